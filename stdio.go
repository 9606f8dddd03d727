package famcp

import (
	"context"
	"errors"
	"os"

	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/wire"
)

// RunStdio serves one client on standard input and output until the input
// ends and its calls are answered, or ctx ends. The log goes to standard error.
func (s *Server) RunStdio(ctx context.Context) error {
	if err := s.start(); err != nil {
		return err
	}
	mux := &wire.Stdio{
		Server: s.mcp, Calls: s.calls, Eras: protocol.Eras(s.cfg.MCP.Eras),
		In: os.Stdin, Out: os.Stdout, MaxLine: s.cfg.MCP.Limits.MaxPayloadBytes,
		Subject: "stdio", AllScopes: true, Logger: s.log,
	}
	err := mux.Run(ctx)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return errors.Join(err, s.Close(stop))
}
