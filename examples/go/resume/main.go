// Command resume goes on with a conversation that another agent had: it is kept in files.
package main

import (
	"context"
	"fmt"
	"log"

	a3s "github.com/a3s-lab/liba3s"
)

var options = &a3s.SessionOptions{SessionStore: a3s.FileStore("sessions"), SessionID: a3s.Ptr("diary")}

func main() {
	ctx := context.Background()
	if err := begin(ctx); err != nil {
		log.Fatal(err)
	}
	if err := goOn(ctx); err != nil {
		log.Fatal(err)
	}
}

func begin(ctx context.Context) error {
	agent, err := a3s.Create(ctx, "agent.acl")
	if err != nil {
		return err
	}
	defer agent.Close(ctx) // nothing is saved: the journal keeps what was said
	session, err := agent.Session(ctx, "workspace", options)
	if err != nil {
		return err
	}
	_, err = session.Send(ctx, "Today we measured.", nil)
	return err
}

func goOn(ctx context.Context) error {
	agent, err := a3s.Create(ctx, "agent.acl")
	if err != nil {
		return err
	}
	defer agent.Close(ctx)
	session, err := agent.ResumeSession(ctx, "diary", options)
	if err != nil {
		return err
	}
	if _, err := session.Send(ctx, "Tomorrow we cut.", nil); err != nil {
		return err
	}
	for _, m := range session.History() {
		fmt.Printf("%s: %s\n", m.Role, m.Text())
	}
	return nil
}
