// Package famcptest tests MCP servers made with famcp, in both protocol eras.
package famcptest
