package main

import (
	"os"
	"testing"
)

func TestServer(t *testing.T) {
	if os.Getenv("FAULT") == "test" { // read here, where the go command notices
		t.Fatal("out of order")
	}
}
