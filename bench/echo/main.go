// Command echo is the other yardstick for speed: net/http that reads a JSON
// body and writes it back, which is what a server cannot do less than.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:3003", "address to listen on")
	flag.Parse()
	srv := &http.Server{Addr: *addr, Handler: http.HandlerFunc(echo), ReadHeaderTimeout: 5 * time.Second}
	if err := srv.ListenAndServe(); err != nil {
		fmt.Fprintln(os.Stderr, "echo:", err)
		os.Exit(1)
	}
}

func echo(w http.ResponseWriter, r *http.Request) {
	var message map[string]json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
		http.Error(w, "the body is not a JSON object", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(message) // a client that is gone gets nothing
}
