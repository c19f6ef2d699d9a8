// Package a3s is libA3S for Go programs: an agent runtime inside your process. You give it
// a workspace, a model and a policy, and send it a prompt; it asks the model, checks every
// call of a tool, runs what is allowed, tells each step as an event, and keeps what is
// needed to resume. It is the runtime itself, without cgo and without a helper process.
//
//	agent, err := a3s.Create(ctx, "agent.acl")
//	session, err := agent.Session(ctx, ".", nil)
//	for e, err := range session.Stream(ctx, "make the tests pass") { ... }
//
// The programs in examples/go show each of the following.
//
// # Objects
//
// An [Agent] holds a configuration and opens a [Session], a conversation in one workspace
// under one policy. A session runs one prompt at a time, a [Run]. All methods may be called
// from any goroutine. Agents share nothing, but what they keep in the same store.
//
// A context bounds the call that it is given to. When it ends [Session.Send] and
// [Session.Stream] cancel their run and [Session.Tool] its tool; Close goes on in the
// background. The error then wraps that of the context.
//
// # One answer, or every event
//
// [Session.Send] waits for the answer, and a run that fails is its error. [Session.Stream]
// gives the events of the same run; there a failure is the last event. [Decode] turns an
// event into its type of package runtime/event; types of newer versions come through as
// event.Unknown. [Session.Start] begins a run and leaves waiting and reading to you.
//
// # What a call may do
//
// Without options a model may read the workspace and nothing else. The option
// PermissionPolicy says by rules what runs, what you are asked about, and what does not
// run; with ConfirmationPolicy a question is an event confirmation_required, which
// [Session.ConfirmToolUse] answers from any goroutine. All options are in docs/options.md;
// nil keeps the default, and [Ptr] makes a pointer to a value.
//
// # Parts of your own
//
// Tools ([NewTool]), models, permission checkers, background, slash commands, session
// stores, workspaces, log receivers and HTTP transports can come from your program: see the
// Register methods of Agent and Session. What belongs to an agent serves all its sessions.
// Functions run on goroutines of their own, beside each other, and may use the library, the
// same session too; a store alone must not wait for the session it keeps. Their context
// ends when nobody waits for the answer. An error is told by its type and text, see
// [ExtensionError], and a panic is a failure like any other. No answer in time has an
// outcome that the method names, and it is never a permission. Close of the [Registration]
// takes the part back.
//
// # Errors
//
// Every error is an *[Error] with a stable Code, such as "SESSION_BUSY" (package
// runtime/fault lists them):
//
//	if errors.Is(err, &a3s.Error{Code: fault.CodeSessionBusy}) { ... }
package a3s
