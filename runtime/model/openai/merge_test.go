package openai

import (
	"strings"
	"testing"
)

func TestMerge(t *testing.T) {
	tests := []struct {
		name   string
		deltas []string
		want   string
	}{
		{"increments", []string{"a", "b", "", "c"}, "abc"},
		{"repeats from one letter on", []string{"H", "He", "Hel", "Hell", "Hello", "Hello!"}, "Hello!"},
		{"repeats in big steps", []string{"The quick brown", "The quick brown fox", "The quick brown fox jumps"}, "The quick brown fox jumps"},
		{"two big steps", []string{"The quick brown", "The quick brown fox"}, "The quick brown fox"},
		{"the last state again, and an older one", []string{"The quick brown", "The quick brown fox", "The quick brown fox", "The quick"}, "The quick brown fox"},
		{"an increment after repeats", []string{"The quick brown", "The quick brown fox", " jumps", "The quick brown fox jumps high"}, "The quick brown fox jumps high"},
		{"a ruler", []string{"------------", "----------------", "-"}, "-----------------------------"},
		{"blank lines", []string{"\n", "\n\n", "a"}, "\n\n\na"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m merge
			var b strings.Builder
			for _, d := range tt.deltas {
				b.WriteString(m.add(d))
			}
			b.WriteString(m.flush())
			if b.String() != tt.want {
				t.Fatalf("got %q, want %q", b.String(), tt.want)
			}
		})
	}
}
