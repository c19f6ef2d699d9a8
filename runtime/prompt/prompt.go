// Package prompt turns a conversation into a model request: system prompt, project
// notes, transcript and tool specifications, fitted to the window; and it compacts the
// transcript when the window fills. It decides nothing about tools and writes no
// facts. Floor 4.
package prompt

import (
	"context"
	_ "embed"
	"strings"
	"unicode/utf8"

	"github.com/a3s-lab/liba3s/runtime/chat"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/model"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

const (
	// notesFile holds the project's own instructions.
	notesFile = "AGENTS.md"
	// maxNotes bounds them (reference: governance 5.3).
	maxNotes = 32 << 10
)

//go:embed system.md
var core string

//go:embed boundaries.md
var boundaries string

// Slots are the parts of the system prompt that the host may fill.
type Slots struct {
	Role          string // takes the place of the first line
	Guidelines    string // appended
	ResponseStyle string // takes the place of the section on answers
	Extra         string // appended last
}

// Builder makes the requests of one session. It holds no state of a run.
type Builder struct {
	Slots     Slots
	Workspace workspace.Workspace
	// Window of the model in tokens; 0 for unknown, which never overflows.
	Window int
	// MaxTokens, Temperature and ThinkingBudget go into every request.
	MaxTokens      int
	Temperature    *float64
	ThinkingBudget int
	SessionID      string
	Compaction     Compaction
	// Providers gives those that are asked at the start of a run; nil for none ever.
	Providers func() []Provider
}

// System makes the system prompt of a run.
func (b *Builder) System(ctx context.Context) (string, error) {
	first, rest, _ := strings.Cut(core, "\n")
	if b.Slots.Role != "" {
		first = b.Slots.Role
	}
	body, answers, _ := strings.Cut(rest, "## Answers\n")
	if b.Slots.ResponseStyle != "" {
		answers = b.Slots.ResponseStyle + "\n"
	}
	parts := []string{first + "\n" + strings.TrimRight(body, "\n"), "Workspace: " + b.Workspace.Root(), boundaries, "## Answers\n" + answers}
	notes, err := b.notes(ctx)
	if err != nil {
		return "", err
	}
	if notes != "" {
		parts = append(parts, "## Project notes (from "+notesFile+")\n"+notes)
	}
	if b.Slots.Guidelines != "" {
		parts = append(parts, "## Guidelines\n"+b.Slots.Guidelines)
	}
	if b.Slots.Extra != "" {
		parts = append(parts, b.Slots.Extra)
	}
	for i, p := range parts {
		parts[i] = strings.TrimSpace(p)
	}
	return strings.Join(parts, "\n\n"), nil
}

// notes reads the project notes. What is not a readable UTF-8 file is no notes: a
// workspace must not be able to keep a session from starting.
func (b *Builder) notes(ctx context.Context) (string, error) {
	data, _, err := b.Workspace.Read(ctx, notesFile, 1<<20)
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", nil
	}
	if !utf8.Valid(data) {
		return "", nil
	}
	return cut(strings.TrimSpace(string(data)), maxNotes), nil
}

// cut shortens s to at most n bytes on a character boundary.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

// Request makes the request for one answer, or CONTEXT_ERROR if the latest prompt alone
// cannot fit the window.
func (b *Builder) Request(system string, messages []chat.Message, tools []chat.ToolSpec) (model.Request, error) {
	req := model.Request{
		System: system, Messages: messages, Tools: tools,
		Temperature: b.Temperature, MaxTokens: b.MaxTokens, ThinkingBudget: b.ThinkingBudget,
		Window: b.Window, SessionID: b.SessionID,
	}
	return req, b.fits(b.least(system, messages, tools))
}

// Fits refuses a message that is larger than the window by itself: CONTEXT_ERROR.
func (b *Builder) Fits(m chat.Message) error { return b.fits(messageTokens(m)) }

func (b *Builder) fits(need int) error {
	if b.Window <= 0 || need <= b.Window {
		return nil
	}
	return fault.Of(fault.CodeContext, "prompt.request",
		"the prompt needs about %d tokens and the model's window has %d; shorten it or raise max_context_tokens", need, b.Window).
		With("tokens", need).With("window", b.Window)
}

// least estimates what must be in the request whatever is compacted: system prompt,
// tools and the newest message.
func (b *Builder) least(system string, messages []chat.Message, tools []chat.ToolSpec) int {
	n := model.EstimateText(system) + toolTokens(tools)
	if len(messages) > 0 {
		n += messageTokens(messages[len(messages)-1])
	}
	return n
}

func toolTokens(tools []chat.ToolSpec) int { return model.Estimate(model.Request{Tools: tools}) }

func messageTokens(m ...chat.Message) int { return model.Estimate(model.Request{Messages: m}) }
