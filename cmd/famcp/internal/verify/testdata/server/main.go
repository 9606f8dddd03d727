// Command server is a project for the tests of package verify: as much of a
// server as one call in either era takes, strict about what a client must
// send. FAULT makes it fail in one way.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

var fault = os.Getenv("FAULT")

type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  struct {
		Meta struct {
			Revision     string    `json:"io.modelcontextprotocol/protocolVersion"`
			Capabilities *struct{} `json:"io.modelcontextprotocol/clientCapabilities"`
		} `json:"_meta"`
		Name      string         `json:"name"`
		Arguments map[string]any `json:"arguments"`
		Revision  string         `json:"protocolVersion"`
	} `json:"params"`
}

func (m message) modern() bool { return m.Params.Meta.Revision == "2026-07-28" }

func main() {
	if fault == "exit" {
		fmt.Fprintln(os.Stderr, "no configuration")
		os.Exit(1)
	}
	switch os.Args[1] {
	case "http":
		http.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
		http.HandleFunc("POST /mcp", serve)
		fmt.Fprintln(os.Stderr, http.ListenAndServe(os.Getenv("WS_HOST")+":"+os.Getenv("WS_PORT"), nil))
		os.Exit(1)
	case "stdio":
		stdio()
	}
}

func serve(w http.ResponseWriter, r *http.Request) {
	var m message
	body, _ := io.ReadAll(r.Body)
	if err := json.Unmarshal(body, &m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := checkHeaders(r.Header, m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if fault == "sick" {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	if sent := r.Header.Get("Authorization"); fault == "protected" && sent != "Bearer good" {
		http.Error(w, "no token", http.StatusUnauthorized)
		return
	}
	if m.Method == "initialize" {
		w.Header().Set("Mcp-Session-Id", "s1")
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if m.Method == "tools/call" { // a notification, then the answer
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(w, ": hello\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n")
		fmt.Fprintf(w, "event: message\ndata: %s\n\n", answer(m))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(answer(m))
}

func checkHeaders(h http.Header, m message) error {
	if m.modern() {
		if h.Get("MCP-Protocol-Version") != "2026-07-28" || h.Get("Mcp-Method") != m.Method || h.Get("Mcp-Name") != m.Params.Name {
			return errors.New("headers and body differ")
		}
		return nil
	}
	if m.Method != "initialize" && h.Get("Mcp-Session-Id") != "s1" {
		return errors.New("no session")
	}
	return nil
}

func stdio() {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var m message
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			panic(err)
		}
		if fault == "chatter" {
			fmt.Println("hello, world")
		}
		if m.ID != nil {
			fmt.Println(`{"jsonrpc":"2.0","method":"notifications/message"}`)
			fmt.Printf("%s\n", answer(m))
		}
	}
	if fault == "stays" {
		time.Sleep(time.Hour)
	}
}

func answer(m message) []byte {
	var result any
	switch {
	case m.Method == "initialize":
		result = map[string]any{"protocolVersion": m.Params.Revision}
		if fault == "old" {
			result = map[string]any{"protocolVersion": "2024-11-05"}
		}
	case m.modern() && m.Params.Meta.Capabilities == nil:
		return []byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32602,"message":"no capabilities"}}`)
	case m.modern() && fault == "legacy only":
		return []byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32022,"message":"unsupported version"}}`)
	case m.Method == "tools/list":
		result = json.RawMessage(tools)
		if fault == "bare" {
			result = json.RawMessage(`{"tools":[]}`)
		}
	case m.Method == "prompts/get" && m.Params.Name == "agent_brief":
		result = json.RawMessage(`{"messages":[{}]}`)
	case m.Method == "tools/call":
		query, _ := m.Params.Arguments["query"].(string)
		limit, _ := m.Params.Arguments["limit"].(float64)
		result = map[string]any{
			"isError": m.Params.Name != "search" || len(query) < 2 || limit < 3 || fault == "tool",
			"content": []any{map[string]any{"type": "text", "text": "out of order"}},
		}
	}
	b, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": result})
	if err != nil {
		panic(err)
	}
	return b
}

const tools = `{"tools":[
	{"name":"delete","annotations":{"readOnlyHint":false},"inputSchema":{"type":"object"}},
	{"name":"search","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","required":["query","limit"],
		"properties":{"query":{"type":["null","string"],"minLength":2},"limit":{"type":"integer","minimum":3}}}}]}`
