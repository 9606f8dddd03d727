package main

import (
	"fmt"

	"github.com/famcp/famcp/templates/project/internal/project"
	"github.com/famcp/famcp/templates/project/internal/tools"
)

func main() {
	fmt.Println(project.Name, tools.Names())
}
