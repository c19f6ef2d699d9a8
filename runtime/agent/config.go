package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/a3s-lab/liba3s/runtime/acl"
	"github.com/a3s-lab/liba3s/runtime/fault"
)

const (
	// maxConfig bounds a configuration file.
	maxConfig = 1 << 20
	// maxWarnings keeps a text of nothing but mistakes from becoming a longer list of them.
	maxWarnings = 100
)

// Config is what an .acl document says, interpreted. Zero values mean "not said".
type Config struct {
	DefaultModel string
	Providers    []Provider
	SessionsDir  string
	StorageFile  bool // storage_backend is file or not said
	Strict       bool
	Limits       ConfigLimits
	// Warnings name what was not understood, with line and column.
	Warnings []string
	// Dir is the folder of the file; empty for inline text.
	Dir string

	defaultAt acl.Pos
}

// ConfigLimits are the limits a document sets for its sessions.
type ConfigLimits struct {
	MaxToolRounds   *int
	ThinkingBudget  *int
	LLMAPITimeoutMS *int
}

// Provider is a providers block.
type Provider struct {
	Name            string
	APIKey          string
	BaseURL         string
	Headers         map[string]string
	SessionIDHeader string
	Proxy           string
	Transport       string // name of a transport of the host
	Models          []Model
	pos             acl.Pos
}

// Model is a models block; what it says replaces the provider's.
type Model struct {
	ID              string
	Name            string
	APIKey          string
	BaseURL         string
	Headers         map[string]string
	SessionIDHeader string
	Reasoning       bool
	ToolCall        bool
	Temperature     bool
	Window          int
	MaxOutput       int
	Script          string
	Stream          bool
	pos             acl.Pos
}

// ReadConfig reads a document: a path when it ends in .acl and names one line, else the
// text itself. env answers env("NAME") and cwd completes a relative path.
func ReadConfig(path, text, cwd string, env map[string]string) (*Config, error) {
	dir := ""
	if path != "" {
		full := absolute(cwd, path)
		b, err := readFile(full)
		if err != nil {
			return nil, err
		}
		text, dir = string(b), filepath.Dir(full)
	}
	doc, err := acl.Parse([]byte(text), acl.Limits{})
	if err != nil {
		return nil, inFile(err, path)
	}
	r := &reader{env: env, file: path, cfg: &Config{StorageFile: true, Dir: dir}}
	for _, w := range doc.Warnings {
		r.warn(w.Pos, "%s", w.Message)
	}
	if err := r.document(doc.Body); err != nil {
		return nil, err
	}
	if r.cfg.Strict && len(r.cfg.Warnings) > 0 {
		return nil, r.fail(r.first, "strict = true and there are mistakes: %s", strings.Join(r.cfg.Warnings, "; ")).With("warnings", r.cfg.Warnings)
	}
	return r.cfg, nil
}

func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, fault.Of(fault.CodeConfig, "agent.open", "cannot read %q: %v; give the path of an .acl file", path, err).With("file", path)
	case !info.Mode().IsRegular():
		return nil, fault.Of(fault.CodeConfig, "agent.open", "%q is not a regular file", path).With("file", path)
	case info.Size() > maxConfig:
		return nil, fault.Of(fault.CodeConfig, "agent.open", "%q has %d bytes, more than %d", path, info.Size(), maxConfig).With("file", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fault.Of(fault.CodeConfig, "agent.open", "cannot read %q: %v", path, err).With("file", path)
	}
	return b, nil
}

func inFile(err error, file string) error {
	if f := fault.From("agent.open", err); file != "" {
		return f.With("file", file)
	}
	return err
}

// absolute completes a path with the host's own working directory, which the host names
// at every open: the process's may be another's.
func absolute(cwd, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(cwd, path)
}

// reader interprets a document.
type reader struct {
	env   map[string]string
	file  string
	cfg   *Config
	first acl.Pos // of the first warning
}

// later are the blocks of the contract that this version does not act on.
var later = []string{"auto_delegation", "autoDelegation", "memory", "task_scheduler", "taskScheduler", "queue", "search", "document_parser", "documentParser", "mcp_servers", "mcpServers", "mcp_server",
	"skill_dirs", "skills", "agent_dirs", "memory_dir", "memoryDir", "user_instructions_dir", "userInstructionsDir", "global_instructions_dir", "globalInstructionsDir",
	"project_doc_max_bytes", "projectDocMaxBytes", "project_doc_fallback_filenames", "projectDocFallbackFilenames", "storage_url", "os", "auto_parallel", "auto_parallel_enabled", "max_parallel_tasks",
	"flow_dir", "agent_dir", "mcp_dir", "skill_dir"}

func (r *reader) document(body acl.Body) error {
	for _, it := range body {
		if b := it.Block; b != nil && len(b.Labels) == 0 && len(b.Body) == 1 && b.Body[0].Attribute != nil && b.Body[0].Attribute.Name == b.Name {
			it = b.Body[0] // a bare attribute is stored as a block of its name
		}
		var err error
		switch {
		case it.Attribute != nil:
			err = r.top(*it.Attribute)
		case it.Block.Name == "providers":
			err = r.provider(it.Block)
		case it.Block.Name == "default_model" && len(it.Block.Labels) == 1:
			r.cfg.DefaultModel, r.cfg.defaultAt = it.Block.Labels[0], it.Block.NameSpan.Start
		case slices.Contains(later, it.Block.Name):
			r.warn(it.Block.NameSpan.Start, "%s has no effect in this version", it.Block.Name)
		default:
			r.warn(it.Block.NameSpan.Start, "unknown block %q", it.Block.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) top(a acl.Attribute) error {
	c := r.cfg
	switch a.Name {
	case "default_model":
		c.defaultAt = a.Value.Span.Start
		return r.str(a, &c.DefaultModel)
	case "storage_backend":
		var kind string
		if err := r.str(a, &kind); err != nil {
			return err
		}
		c.StorageFile = !strings.EqualFold(kind, "memory")
		if strings.EqualFold(kind, "custom") {
			return r.fail(a.Value.Span.Start, "storage_backend = \"custom\" needs a store from the host: set session_store")
		}
		return nil
	case "sessions_dir":
		return r.str(a, &c.SessionsDir)
	case "strict":
		return r.boolean(a, &c.Strict)
	case "max_tool_rounds":
		return r.count(a, &c.Limits.MaxToolRounds)
	case "thinking_budget":
		return r.count(a, &c.Limits.ThinkingBudget)
	case "llm_api_timeout_ms", "api_timeout_ms", "model_api_timeout_ms":
		return r.count(a, &c.Limits.LLMAPITimeoutMS)
	}
	if slices.Contains(later, a.Name) {
		r.warn(a.NameSpan.Start, "%s has no effect in this version", a.Name)
		return nil
	}
	r.warn(a.NameSpan.Start, "unknown name %q", a.Name)
	return nil
}

func (r *reader) provider(b *acl.Block) error {
	if len(b.Labels) != 1 {
		return r.fail(b.NameSpan.Start, "providers needs a name: providers \"openai\" { ... }")
	}
	p := Provider{Name: b.Labels[0], pos: b.NameSpan.Start}
	for _, it := range b.Body {
		var err error
		switch {
		case it.Block != nil && it.Block.Name == "models":
			err = r.model(it.Block, &p)
		case it.Block != nil && it.Block.Name == "headers":
			p.Headers, err = r.pairs(it.Block.Body)
		case it.Block != nil:
			r.warn(it.Block.NameSpan.Start, "unknown block %q in providers %q", it.Block.Name, p.Name)
		default:
			err = r.providerKey(*it.Attribute, &p)
		}
		if err != nil {
			return err
		}
	}
	r.cfg.Providers = append(r.cfg.Providers, p)
	return nil
}

func (r *reader) providerKey(a acl.Attribute, p *Provider) error {
	switch a.Name {
	case "apiKey", "api_key":
		return r.str(a, &p.APIKey)
	case "baseUrl", "base_url":
		return r.str(a, &p.BaseURL)
	case "headers":
		return r.strings(a, &p.Headers)
	case "sessionIdHeader", "session_id_header":
		return r.str(a, &p.SessionIDHeader)
	case "proxy":
		return r.str(a, &p.Proxy)
	case "transport":
		return r.transport(a, p)
	}
	r.warn(a.NameSpan.Start, "unknown name %q in providers %q", a.Name, p.Name)
	return nil
}

// transport takes "host/NAME", the one kind there is.
func (r *reader) transport(a acl.Attribute, p *Provider) error {
	var text string
	if err := r.str(a, &text); err != nil || text == "" {
		return err
	}
	name, ok := strings.CutPrefix(text, "host/")
	if !ok || name == "" {
		return r.fail(a.Value.Span.Start, "transport must be \"host/NAME\" with the name of a transport that the host registers, got %q", text)
	}
	p.Transport = name
	return nil
}

func (r *reader) model(b *acl.Block, p *Provider) error {
	if len(b.Labels) != 1 {
		return r.fail(b.NameSpan.Start, "models needs an id: models \"gpt\" { ... }")
	}
	m := Model{ID: b.Labels[0], Name: b.Labels[0], ToolCall: true, Temperature: true, Stream: true, pos: b.NameSpan.Start}
	for _, it := range b.Body {
		var err error
		switch {
		case it.Block != nil && it.Block.Name == "limit":
			err = r.limit(it.Block.Body, &m)
		case it.Block != nil && it.Block.Name == "headers":
			m.Headers, err = r.pairs(it.Block.Body)
		case it.Block != nil:
			if !slices.Contains([]string{"modalities", "cost"}, it.Block.Name) {
				r.warn(it.Block.NameSpan.Start, "unknown block %q in models %q", it.Block.Name, m.ID)
			}
		default:
			err = r.modelKey(*it.Attribute, &m)
		}
		if err != nil {
			return err
		}
	}
	p.Models = append(p.Models, m)
	return nil
}

func (r *reader) modelKey(a acl.Attribute, m *Model) error {
	switch a.Name {
	case "name":
		return r.str(a, &m.Name)
	case "apiKey", "api_key":
		return r.str(a, &m.APIKey)
	case "baseUrl", "base_url":
		return r.str(a, &m.BaseURL)
	case "headers":
		return r.strings(a, &m.Headers)
	case "sessionIdHeader", "session_id_header":
		return r.str(a, &m.SessionIDHeader)
	case "reasoning":
		return r.boolean(a, &m.Reasoning)
	case "toolCall", "tool_call":
		return r.boolean(a, &m.ToolCall)
	case "temperature":
		return r.boolean(a, &m.Temperature)
	case "stream":
		return r.boolean(a, &m.Stream)
	case "script":
		return r.str(a, &m.Script)
	case "limit":
		var body acl.Body
		for i := range a.Value.Object {
			body = append(body, acl.Item{Attribute: &a.Value.Object[i]})
		}
		if a.Value.Kind != acl.Object {
			return r.wrong(a, "an object such as { context = 32768 }")
		}
		return r.limit(body, m)
	case "contextTokens", "context_tokens":
		r.warn(a.NameSpan.Start, "%s is old: write limit = { context = ... }", a.Name)
		return r.into(a, &m.Window)
	case "maxTokens", "max_tokens":
		r.warn(a.NameSpan.Start, "%s is old: write limit = { output = ... }", a.Name)
		return r.into(a, &m.MaxOutput)
	case "family", "attachment", "releaseDate", "release_date", "modalities", "cost":
		return nil // known, and nothing of this version depends on it
	}
	r.warn(a.NameSpan.Start, "unknown name %q in models %q", a.Name, m.ID)
	return nil
}

func (r *reader) limit(body acl.Body, m *Model) error {
	for _, it := range body {
		if it.Attribute == nil {
			continue
		}
		var err error
		switch it.Attribute.Name {
		case "context":
			err = r.into(*it.Attribute, &m.Window)
		case "output":
			err = r.into(*it.Attribute, &m.MaxOutput)
		default:
			r.warn(it.Attribute.NameSpan.Start, "unknown name %q in limit", it.Attribute.Name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) warn(at acl.Pos, format string, args ...any) {
	if len(r.cfg.Warnings) == 0 {
		r.first = at
	}
	if len(r.cfg.Warnings) < maxWarnings {
		r.cfg.Warnings = append(r.cfg.Warnings, acl.Warning{Message: fmt.Sprintf(format, args...), Pos: at}.String())
	}
}

func (r *reader) fail(at acl.Pos, format string, args ...any) *fault.Error {
	return configAt(r.file, at, format, args...)
}

// configAt makes a CONFIG_ERROR with file, line and column.
func configAt(file string, at acl.Pos, format string, args ...any) *fault.Error {
	text := fmt.Sprintf(format, args...)
	e := fault.Of(fault.CodeConfig, "agent.open", "%s", text)
	if at.Line > 0 {
		e = fault.Of(fault.CodeConfig, "agent.open", "line %d, column %d: %s", at.Line, at.Column, text).With("line", at.Line).With("column", at.Column)
	}
	if file != "" {
		e.With("file", file)
	}
	return e
}
