// Command user is a program that has the module from a file alone.
package main

import (
	"context"
	"fmt"
	"log"
	"runtime/debug"
	"strings"

	a3s "github.com/a3s-lab/liba3s"
	"github.com/a3s-lab/liba3s/runtime/event"
)

func main() {
	ctx := context.Background()
	agent, err := a3s.Create(ctx, "agent.acl")
	if err != nil {
		log.Fatal(err)
	}
	defer agent.Close(ctx)
	session, err := agent.Session(ctx, "workspace", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(version(), " ")
	for e, err := range session.Stream(ctx, "where is the needle?") {
		if err != nil {
			log.Fatal(err)
		}
		payload, err := a3s.Decode(e)
		if err != nil {
			log.Fatal(err)
		}
		switch p := payload.(type) {
		case event.ToolStart:
			fmt.Print(p.Name, ": ")
		case event.AgentEnd:
			fmt.Println(p.Text)
		}
	}
}

// version is that of the module which this program was linked with.
func version() string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == "github.com/a3s-lab/liba3s" {
			return strings.TrimPrefix(m.Version, "v")
		}
	}
	return "none"
}
