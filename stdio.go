package famcp

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/famcp/famcp/internal/runtime/call"
	"github.com/famcp/famcp/internal/runtime/protocol"
	"github.com/famcp/famcp/internal/runtime/wire"
)

// RunStdio serves one client on standard input and output until the input
// ends and its calls are answered, or ctx ends. The log goes to standard error.
func (s *Server) RunStdio(ctx context.Context) error {
	return s.serveStdio(ctx, os.Stdin, os.Stdout)
}

func (s *Server) serveStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	if err := s.start(call.Stdio); err != nil {
		return err
	}
	authorize, err := s.stdioCaller(ctx)
	if err != nil {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		return errors.Join(err, s.Close(stop))
	}
	mux := &wire.Stdio{
		Server: s.mcp, Calls: s.calls, Eras: protocol.Eras(s.cfg.MCP.Eras),
		In: in, Out: out, MaxLine: s.cfg.MCP.Limits.MaxPayloadBytes,
		Subject: "stdio", AllScopes: true, Authorize: authorize, Logger: s.log, Messages: s.messages,
	}
	err = mux.Run(ctx)
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	return errors.Join(err, s.Close(stop))
}
