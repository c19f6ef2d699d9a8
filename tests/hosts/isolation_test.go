package hosts

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/a3s-lab/liba3s/tests/modelserver"
)

// FFI-08: agents of one process share nothing.
func TestFiftyAgents(t *testing.T) {
	const count = 50
	interpreter, program := script(t, "many.py")
	dir := folder(t, turn)
	for n := range count {
		write(t, filepath.Join(dir, "agents", strconv.Itoa(n)), map[string]string{
			"agent.acl": fmt.Sprintf(provider, "turns.txt") + fmt.Sprintf("no_such_key_%d = 1\n", n) +
				"providers \"local\" {\n  apiKey = env(\"THE_KEY\")\n  baseUrl = \"http://127.0.0.1:1\"\n  models \"m\" {}\n}\n",
			"turns.txt": "call bash {\"command\": \"echo $(cat own.txt) in $(pwd)\"}\nend\n" +
				fmt.Sprintf("say mine sk-secret-of-agent-%03d theirs sk-secret-of-agent-%03d\nend\n", n, (n+1)%count),
			"workspace/own.txt": fmt.Sprintf("file of %d\n", n),
		})
	}
	clean(t, dir, "nothing wrong {}\n", interpreter, program, dir, strconv.Itoa(count))
}

// hostile are variables that other programs of this kind listen to, and those of Go.
var hostile = []string{
	"GOGC=1", "GOMEMLIMIT=2MiB", "GOMAXPROCS=1", "GODEBUG=http2debug=2,netdns=9", "GOTRACEBACK=none",
	"HTTP_PROXY=http://127.0.0.1:1", "http_proxy=http://127.0.0.1:1", "ALL_PROXY=socks5://127.0.0.1:1", "HTTPS_PROXY=http://127.0.0.1:1",
	"OLLAMA_HOST=127.0.0.1:1", "OPENAI_API_KEY=sk-of-the-process", "OPENAI_BASE_URL=http://127.0.0.1:1", "ANTHROPIC_API_KEY=sk-of-the-process",
	"A3S_CONFIG=/nowhere/a.acl", "A3S_LOG=debug", "A3S_LIB=/nowhere", "A3S_HOME=/nowhere", "A3S_MODEL=no/such", "LOG_LEVEL=debug", "RUST_LOG=trace",
	"TMPDIR=/nowhere", "XDG_CONFIG_HOME=/nowhere", "XDG_DATA_HOME=/nowhere", "SHELL=/nowhere", "LANG=xx_YY", "LC_ALL=xx_YY", "TZ=Nowhere/Else",
	"BASH_ENV=/nowhere/rc", "ENV=/nowhere/rc", "SSL_CERT_FILE=/nowhere", "PWD=/nowhere", "USER=nobody-at-all", "CI=1", "DEBUG=*", "NO_COLOR=1",
}

// changing matches what differs between any two runs; pieces of output come as they come.
var changing = regexp.MustCompile(`(?m)[0-9a-f]{8}-[0-9a-f-]{27}|\b(run|session|ses|call)[-_][0-9A-Za-z-]{8,}|,?"\w+_ms":\d+|"sequence":\d+|A3S_CALL=\w+|^.*"type":"tool_output_delta".*\n`)

// FFI-08: nothing is read from the environment of the process: not by the library, not
// by its model client, not by the commands it starts.
func TestEnvironmentOfTheProcess(t *testing.T) {
	program := linked(t, "turn")
	server, err := modelserver.New()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	dir := folder(t, turn)
	// An address that no rule takes from a proxy, as they do 127.0.0.1.
	url := strings.Replace(server.URL, "127.0.0.1", "0.0.0.0", 1)
	write(t, dir, map[string]string{"local.acl": fmt.Sprintf("default_model = \"local/main\"\nproviders \"local\" {\n  apiKey = \"sk-of-the-agent\"\n  baseUrl = %q\n  models \"main\" {}\n}\n", url+"/v1")})

	var told [2]string
	for i, more := range [][]string{nil, hostile} {
		server.Add(
			modelserver.Answer{Calls: []modelserver.Call{{ID: "call_0", Name: "bash", Arguments: `{"command": "env | sort; date +%Z; echo ünï"}`}}},
			modelserver.Answer{Text: "all well"},
		)
		got := host(t, dir, more, program, dir)
		if got.status != "exit status 0" || got.stderr != "" || !strings.Contains(got.out, "all well") {
			t.Fatalf("with %q: %+v", more, got)
		}
		told[i] = changing.ReplaceAllString(got.out, "")
	}
	if told[0] != told[1] {
		t.Errorf("the environment changed what is told:\n%s\n%s", told[0], told[1])
	}
	for _, entry := range hostile {
		if name, value, _ := strings.Cut(entry, "="); name != "PWD" && len(value) > 3 && strings.Contains(told[1], name+"=") && strings.Contains(told[1], value) {
			t.Errorf("a command saw %s", entry)
		}
	}
	asked := server.Requests()
	if len(asked) != 4 || slices.ContainsFunc(asked, func(r modelserver.Request) bool { return r.Header.Get("Authorization") != "Bearer sk-of-the-agent" }) {
		t.Errorf("the model was asked %d times: %+v", len(asked), asked)
	}
}
