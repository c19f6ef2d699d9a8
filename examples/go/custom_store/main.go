// Command custom_store keeps a session in a store of the program's own: a map in memory.
package main

import (
	"context"
	"fmt"
	"log"
	"maps"
	"slices"
	"sync"

	a3s "github.com/a3s-lab/liba3s"
)

// shelf keeps sessions: of each the last snapshot and the facts that follow it.
type shelf struct {
	mu   sync.Mutex
	kept map[string]*a3s.StoreLoaded
}

func (s *shelf) Load(_ context.Context, id string, from, limit int64) (*a3s.StoreLoaded, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept[id]
	if k == nil {
		return nil, nil
	}
	count := int64(len(k.Facts))
	facts := k.Facts[min(from, count):min(from+limit, count)]
	return &a3s.StoreLoaded{Generation: k.Generation, Snapshot: k.Snapshot, Count: &count, Facts: facts}, nil
}

func (s *shelf) Append(_ context.Context, id string, generation uint64, from int64, facts []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[id] == nil {
		s.kept[id] = &a3s.StoreLoaded{Generation: generation}
	}
	if k := s.kept[id]; k.Generation == generation {
		k.Facts = append(k.Facts[:from:from], facts...)
	}
	return nil
}

func (s *shelf) Save(_ context.Context, id string, generation uint64, snapshot string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[id] = &a3s.StoreLoaded{Generation: generation, Snapshot: &snapshot}
	return nil
}

func (s *shelf) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.kept, id)
	return nil
}

func (s *shelf) List(context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.kept)), nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	agent, err := a3s.Create(ctx, "agent.acl")
	if err != nil {
		return err
	}
	defer agent.Close(ctx)
	store, err := agent.RegisterSessionStore(ctx, "map", &shelf{kept: map[string]*a3s.StoreLoaded{}})
	if err != nil {
		return err
	}
	options := &a3s.SessionOptions{SessionStore: store.Option(), SessionID: a3s.Ptr("notebook")}
	session, err := agent.Session(ctx, "workspace", options)
	if err != nil {
		return err
	}
	if _, err := session.Send(ctx, "The door code is 1234.", nil); err != nil {
		return err
	}
	if err := session.Save(ctx); err != nil {
		return err
	}
	if err := session.Close(ctx); err != nil {
		return err
	}
	ids, err := agent.ListStoredSessions(ctx, store.Option())
	if err != nil {
		return err
	}
	for _, id := range ids {
		fmt.Println("kept:", id)
	}
	again, err := agent.ResumeSession(ctx, "notebook", options)
	if err != nil {
		return err
	}
	for _, m := range again.History() {
		fmt.Printf("%s: %s\n", m.Role, m.Text())
	}
	return nil
}
