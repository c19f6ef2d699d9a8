package agent

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/runtime/fault"
)

// samples are values of every JSON type.
var samples = []string{"true", "false", "0", "1", "3", "8", "-1", "2.5", `""`, `"off"`, `"on"`, "[]", `["x"]`, "{}", `{"enabled":false}`, `{"enabled":true}`, `{"a":1}`}

func decodeOne(t *testing.T, name, value string) error {
	t.Helper()
	b, err := json.Marshal(map[string]json.RawMessage{name: json.RawMessage(value)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = DecodeOptions(b)
	return err
}

// refusal checks that err is the error of an option.
func refusal(t *testing.T, name string, err error) {
	t.Helper()
	f := fault.From("", err)
	if f == nil || f.Code != fault.CodeSessionConfig || f.Details["field"] != name || f.Details["reason"] == nil {
		t.Errorf("%s: %v, details %v", name, err, f)
	}
}

func TestDefaultOnlyOptionsAcceptTheirDefaults(t *testing.T) {
	for _, o := range OptionTable {
		if o.State != DefaultOnly {
			continue
		}
		t.Run(o.Name, func(t *testing.T) {
			if len(o.accept) == 0 {
				t.Fatal("it accepts nothing")
			}
			for _, value := range append(o.accept, "null", `{"enabled":false}`, "{ \"enabled\" : false, \"max_tasks\": 4 }") {
				if err := decodeOne(t, o.Name, value); err != nil {
					t.Errorf("%s: %v", value, err)
				}
			}
			for _, value := range samples {
				if slices.Contains(o.accept, value) || value == `{"enabled":false}` {
					continue
				}
				refusal(t, o.Name, decodeOne(t, o.Name, value))
			}
		})
	}
}

func TestRefusedOptionsAreRefused(t *testing.T) {
	for _, o := range OptionTable {
		if o.State != Refused {
			continue
		}
		t.Run(o.Name, func(t *testing.T) {
			if err := decodeOne(t, o.Name, "null"); err != nil {
				t.Errorf("null is unset: %v", err)
			}
			for _, value := range samples {
				refusal(t, o.Name, decodeOne(t, o.Name, value))
			}
		})
	}
}

// An option that works takes values of its type and names itself when it refuses.
func TestWorkingOptionsNameThemselves(t *testing.T) {
	for _, o := range OptionTable {
		if o.State != Works {
			continue
		}
		t.Run(o.Name, func(t *testing.T) {
			if err := decodeOne(t, o.Name, "null"); err != nil {
				t.Errorf("null is unset: %v", err)
			}
			wrong := 0
			for _, value := range samples {
				if err := decodeOne(t, o.Name, value); err != nil {
					wrong++
					refusal(t, o.Name, err)
				}
			}
			if wrong == 0 {
				t.Error("it takes everything")
			}
		})
	}
}

func TestOptionTableAndOptionsAgree(t *testing.T) {
	fields := optionFields()
	for _, o := range OptionTable {
		if has := slices.Contains(fields, o.Name); has != (o.State == Works) {
			t.Errorf("%s is %s and in Options: %v", o.Name, o.State, has)
		}
		if o.Doc == "" || o.Type == "" || o.Default == "" {
			t.Errorf("%s is not described", o.Name)
		}
	}
	for _, f := range fields {
		if !slices.ContainsFunc(OptionTable, func(o Option) bool { return o.Name == f }) {
			t.Errorf("%s is in Options and not in the table", f)
		}
	}
}

// Large numbers are taken as they are.
func TestLongTimes(t *testing.T) {
	o, err := DecodeOptions([]byte(`{"tool_timeout_ms": 4611686018427387904, "max_execution_time_ms": 4611686018427387904}`))
	if err != nil {
		t.Fatal(err)
	}
	if d := ms(o.ToolTimeoutMS, 0); d <= 0 {
		t.Errorf("a long time is %v", d)
	}
}

func TestSecrets(t *testing.T) {
	c, err := ReadConfig("", `
providers "openai" {
  apiKey = env("KEY")
  baseUrl = "https://someone:url-password@example.org/v1?x=1"
  proxy = "http://proxy-token@127.0.0.1:1"
  headers = { Authorization = "Bearer header-token", "X-Api-Key" = "header-key", "X-Team" = "blue" }
  models "a" { apiKey = "model-key" headers = { Cookie = "model-cookie" } }
  models "b" { baseUrl = "http://only-token@h" }
}
providers "ollama" { apiKey = "Ollama" models "c" { apiKey = "ollama" } }`, "/", map[string]string{"KEY": "key-of-env"})
	if err != nil {
		t.Fatal(err)
	}
	got := c.secrets()
	for _, want := range []string{"key-of-env", "url-password", "proxy-token", "Bearer header-token", "header-token", "header-key", "model-key", "model-cookie", "only-token"} {
		if !slices.Contains(got, want) {
			t.Errorf("%q is no secret", want)
		}
	}
	for _, not := range []string{"blue", "someone", "", "Ollama", "ollama"} {
		if slices.Contains(got, not) {
			t.Errorf("%q is a secret", not)
		}
	}
	if got := shown("https://someone:url-password@example.org/v1?key=1"); got != "https://example.org/v1" {
		t.Errorf("shown as %s", got)
	}
}

func FuzzReadConfig(f *testing.F) {
	for _, seed := range []string{
		"default_model = \"a/b\"\nproviders \"a\" { apiKey = env(\"K\") models \"b\" { limit = { context = 1 } } }",
		"providers \"x\" { headers = { a = 1 } }", "strict = true\nx = 1", "default_model \"a/b\" {}", "max_tool_rounds = -1", "providers \"p\" { models \"m\" { limit { context = 1e99 } headers { a = null } } }",
		"a = ", "{", "env(\"x\")", "default_model = env(\"K\", \"L\")", "storage_backend = \"custom\"",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ReadConfig("", text, "/", map[string]string{"K": "v"})
		if err != nil {
			if e := fault.From("", err); e.Code != fault.CodeConfig {
				t.Errorf("%v", err)
			}
			return
		}
		if len(c.Warnings) > maxWarnings {
			t.Errorf("%d warnings", len(c.Warnings))
		}
		c.secrets()
		a := &Agent{cfg: c}
		if c.DefaultModel != "" {
			if _, _, err := a.find(c.DefaultModel); err != nil && fault.From("", err).Code != fault.CodeConfig {
				t.Errorf("%v", err)
			}
		}
	})
}

func optionFields() []string {
	var names []string
	for f := range reflect.TypeFor[Options]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}
