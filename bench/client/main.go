// Command client measures what a load generator does not: how soon a new
// process answers, and what idle sessions cost.
//
//	client first URL COMMAND...   starts COMMAND, waits for its first answer at
//	                              URL, prints the milliseconds since the start
//	                              and leaves it to be ended by its process id,
//	                              which it prints too
//	client sessions URL COUNT     opens COUNT legacy sessions and leaves them
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"time"
)

func main() {
	if err := run(context.Background(), os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	switch {
	case len(args) >= 3 && args[0] == "first":
		return first(ctx, out, args[1], args[2], args[3:]...)
	case len(args) == 3 && args[0] == "sessions":
		count, err := strconv.Atoi(args[2])
		if err != nil {
			return fmt.Errorf("%q is not a number", args[2])
		}
		return sessions(ctx, args[1], count)
	}
	return errors.New("usage: client first URL COMMAND... | client sessions URL COUNT")
}

// first polls without a pause: the first answer may come within milliseconds.
func first(ctx context.Context, out io.Writer, url, name string, args ...string) error {
	start := time.Now()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	for time.Since(start) < 10*time.Second {
		if _, err := post(ctx, url, "", modernCall, modernHeaders); err == nil {
			_, err := fmt.Fprintf(out, "%.1f %d\n", float64(time.Since(start).Microseconds())/1000, cmd.Process.Pid)
			return err
		}
	}
	return errors.Join(fmt.Errorf("%s does not answer at %s", name, url), cmd.Process.Kill())
}

const modernCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"test_simple_text","arguments":{},"_meta":{` +
	`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

var modernHeaders = map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "test_simple_text"}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",` +
		`"capabilities":{},"clientInfo":{"name":"bench","version":"1.0.0"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func sessions(ctx context.Context, url string, count int) error {
	for range count {
		id, err := post(ctx, url, "", initialize, nil)
		if err != nil {
			return err
		}
		if id == "" {
			return errors.New("initialize opened no session")
		}
		if _, err := post(ctx, url, id, initialized, nil); err != nil {
			return err
		}
	}
	return nil
}

// post sends a message and returns the session that the answer names.
func post(ctx context.Context, url, session, body string, headers map[string]string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewBufferString(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return "", err
	}
	if res.StatusCode >= http.StatusBadRequest {
		return "", fmt.Errorf("%s: %s", res.Status, answer)
	}
	return res.Header.Get("Mcp-Session-Id"), nil
}
