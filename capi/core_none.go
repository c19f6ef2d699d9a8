package main

import (
	"context"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

type runtimeCore struct{}

func none() error { return fault.New(fault.Unsupported, "", "this build has no runtime") }

func (runtimeCore) OpenAgent(context.Context, []byte) (any, error)             { return nil, none() }
func (runtimeCore) OpenSession(context.Context, any, []byte) (any, error)      { return nil, none() }
func (runtimeCore) StartRun(context.Context, any, []byte) (any, error)         { return nil, none() }
func (runtimeCore) Call(context.Context, any, string, []byte) ([]byte, error)  { return nil, none() }
func (runtimeCore) Tell(any, uint64, []byte, error)                            {}
func (runtimeCore) Input(context.Context, any, []byte) error                   { return none() }
func (runtimeCore) Cancel(context.Context, any, string) error                  { return none() }
func (runtimeCore) Wait(context.Context, any) ([]byte, error)                  { return nil, none() }
func (runtimeCore) OpenStream(context.Context, any, []byte) (cursor, error)    { return nil, none() }
func (runtimeCore) Register(context.Context, any, string, []byte) (any, error) { return nil, none() }
func (runtimeCore) Chunk(context.Context, any, uint64, []byte) error           { return none() }
func (runtimeCore) Reply(context.Context, any, uint64, []byte) error           { return none() }
func (runtimeCore) Close(context.Context, any) error                           { return none() }
func features() []string                                                       { return nil }
