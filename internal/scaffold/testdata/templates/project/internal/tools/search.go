package tools

func search() {}
