package local

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/a3s-lab/liba3s/internal/proc"
	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/workspace"
)

var _ workspace.Runner = (*Workspace)(nil)

// defaultPath is searched when the host handed over no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// defaults make programs that would ask somebody fail at once, since there is no
// terminal (case CANC-07). A command may set them otherwise.
var defaults = map[string]string{
	"PATH":                defaultPath,
	"GIT_TERMINAL_PROMPT": "0",
	"GIT_EDITOR":          "false",
	"EDITOR":              "false",
	"PAGER":               "cat",
	"GIT_PAGER":           "cat",
}

// passed are the variables that commands get out of the host's environment: what a
// program needs to find its tools and to speak the user's language, and nothing that
// could be a key (cases TRST-01, TRST-03). A3S_CALL marks the processes of an outer call.
var passed = []string{"PATH", "HOME", "LANG", "LANGUAGE", "TZ", "TERM", "USER", "LOGNAME", "SHELL", "TMPDIR", "A3S_CALL"}

// hooks are variables that make a loader, a shell or an interpreter run or load
// something first. Nobody may set them for a command, neither host nor caller.
var hooks = map[string]bool{
	"BASH_ENV": true, "ENV": true, "SHELLOPTS": true, "BASHOPTS": true, "PS4": true, "PROMPT_COMMAND": true,
	"NODE_OPTIONS": true, "NODE_PATH": true,
	"PYTHONSTARTUP": true, "PYTHONPATH": true, "PYTHONHOME": true, "PYTHONINSPECT": true,
	"RUBYOPT": true, "RUBYLIB": true, "PERL5OPT": true, "PERL5LIB": true, "PERL5DB": true,
	"JAVA_TOOL_OPTIONS": true, "_JAVA_OPTIONS": true, "JDK_JAVA_OPTIONS": true,
	"GCONV_PATH": true, "GLIBC_TUNABLES": true,
}

// hookPrefixes are families of such variables.
var hookPrefixes = []string{"LD_", "DYLD_", "BASH_FUNC_", "LUA_INIT"}

func isHook(name string) bool {
	if hooks[name] {
		return true
	}
	return slices.ContainsFunc(hookPrefixes, func(p string) bool { return strings.HasPrefix(name, p) })
}

// Run runs a line with bash, or sh where there is no bash, in the root.
func (w *Workspace) Run(ctx context.Context, cmd workspace.Command, output func([]byte)) (workspace.Exit, error) {
	env, err := w.environment(cmd.Env)
	if err != nil {
		return workspace.Exit{}, err
	}
	shell, err := w.shell(env["PATH"])
	if err != nil {
		return workspace.Exit{}, err
	}
	list := make([]string, 0, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	res, err := proc.Run(ctx, proc.Spec{
		Path:    shell,
		Args:    []string{filepath.Base(shell), "-c", cmd.Line},
		Dir:     w.root,
		Env:     list,
		Timeout: cmd.Timeout,
		Grace:   w.grace,
	}, output)
	if err != nil {
		return workspace.Exit{}, err
	}
	return workspace.Exit{Code: res.Code, TimedOut: res.TimedOut, Cancelled: res.Cancelled, Background: res.Background, Unknown: res.Unknown}, nil
}

// environment builds the whole environment of a command.
func (w *Workspace) environment(extra map[string]string) (map[string]string, error) {
	env := maps.Clone(defaults)
	env["PWD"] = w.root
	for name, value := range w.env {
		if slices.Contains(passed, name) || strings.HasPrefix(name, "LC_") {
			env[name] = value
		}
	}
	for name, value := range extra {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			return nil, fault.New(fault.Invalid, "workspace.run", "%q cannot be an environment variable", name)
		}
		if isHook(name) {
			return nil, fault.New(fault.Denied, "workspace.run", "the variable %q would load code into the command and is not passed on", name)
		}
		env[name] = value
	}
	return env, nil
}

// shell finds the shell in the command's own PATH. Relative elements are left out: they
// would run a program of the workspace.
func (w *Workspace) shell(path string) (string, error) {
	for _, name := range []string{"bash", "sh"} {
		for _, dir := range filepath.SplitList(path) {
			if !filepath.IsAbs(dir) {
				continue
			}
			file := filepath.Join(dir, name)
			if fi, err := os.Stat(file); err == nil && fi.Mode().IsRegular() && fi.Mode().Perm()&0o111 != 0 {
				return file, nil
			}
		}
	}
	return "", fault.New(fault.Unsupported, "workspace.run", "neither bash nor sh is in the PATH %q", path)
}
