// Command baresdk is the yardstick for speed: a go-sdk stateless server with
// one trivial tool and nothing of ours around it. Benchmarks compare
// internal/everything with it in one interleaved run.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:3002", "address to listen on")
	flag.Parse()
	if err := run(*addr); err != nil {
		fmt.Fprintln(os.Stderr, "baresdk:", err)
		os.Exit(1)
	}
}

// run serves on addr until a signal stops it.
func run(addr string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	srv := &http.Server{Addr: addr, Handler: handler(), ReadHeaderTimeout: 5 * time.Second}
	stopped := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stopped()
	if err := srv.ListenAndServe(); ctx.Err() == nil {
		return fmt.Errorf("serving on %s: %w", addr, err)
	}
	return nil
}

// handler returns the SDK's stateless handler at /mcp, with its defaults: what
// a team that used the SDK alone would run.
func handler() http.Handler {
	server := mcp.NewServer(&mcp.Implementation{Name: "baresdk", Version: "1.0.0"}, nil)
	tool := &mcp.Tool{Name: "test_simple_text", Description: "Tests simple text content response"}
	mcp.AddTool(server, tool, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		text := &mcp.TextContent{Text: "This is a simple text response for testing."}
		return &mcp.CallToolResult{Content: []mcp.Content{text}}, nil, nil
	})
	mux := http.NewServeMux()
	mux.Handle("/mcp", mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true},
	))
	return mux
}
