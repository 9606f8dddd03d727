package tools

func Names() []string { return []string{"search"} }
