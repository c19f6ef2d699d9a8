// Package artifact keeps texts that are too long for a transcript: it names them by
// the digest of their redacted content, bounds what a model sees of a tool's result,
// and forgets the oldest when its limits are met. What is written to the journal is
// the caller's. Floor 5.
package artifact

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"sync"

	"github.com/a3s-lab/liba3s/runtime/fault"
	"github.com/a3s-lab/liba3s/runtime/record"
	"github.com/a3s-lab/liba3s/runtime/store"
)

// The default limits of a Store.
const (
	MaxCount = 256
	MaxBytes = 16 << 20
)

// Config says how a Store works; its zero value keeps texts in memory, unredacted,
// within the default limits.
type Config struct {
	// Redact takes secrets out of a text before it is hashed, kept or shown in part.
	Redact func(string) string
	// Blobs, if set, holds the contents under the hex digest; memory then only holds
	// what describes them.
	Blobs store.Blobs
	// MaxCount and MaxBytes bound what is kept; 0 stands for the default.
	MaxCount int
	MaxBytes int64
}

// Store holds the artifacts of one session. It may be used concurrently.
type Store struct {
	conf Config

	mu    sync.Mutex
	order *list.List // of *item, oldest first; guarded by mu, as all below
	byURI map[string]*list.Element
	refs  map[string]int // items by digest: two tools may give the same text
	bytes int64
	stale map[string]bool // digests whose blob is to be deleted
}

type item struct {
	rec    record.Artifact // Content is empty when there are blobs
	digest string          // empty if the content was never kept
	size   int64
}

// New returns an empty Store.
func New(conf Config) *Store {
	if conf.Redact == nil {
		conf.Redact = func(s string) string { return s }
	}
	if conf.MaxCount == 0 {
		conf.MaxCount = MaxCount
	}
	if conf.MaxBytes == 0 {
		conf.MaxBytes = MaxBytes
	}
	return &Store{conf: conf, order: list.New(), byURI: map[string]*list.Element{}, refs: map[string]int{}, stale: map[string]bool{}}
}

// Name gives the id and URI of a text that a tool gave.
func Name(tool, content string) (id, uri string) {
	return names(clean(tool), digest(content))
}

func names(tool, hex string) (id, uri string) {
	return "tool-output:" + tool + ":" + hex, "a3s://tool-output/" + tool + "/" + hex
}

func digest(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

func clean(tool string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, tool)
}

// Put keeps a text under a tool's name and returns its record, without the content,
// for the journal. The same text of the same tool is the same artifact; it becomes the
// newest. The newest is always kept, also alone above the limits.
func (s *Store) Put(ctx context.Context, tool, content string) (record.Artifact, error) {
	return s.put(ctx, tool, s.conf.Redact(text(content)), 0)
}

// put keeps a text that is redacted and valid already.
func (s *Store) put(ctx context.Context, tool, content string, shown int) (record.Artifact, error) {
	tool, hex := clean(tool), digest(content)
	id, uri := names(tool, hex)
	rec := record.Artifact{
		ArtifactID: id, ArtifactURI: uri, ToolName: tool, Content: content,
		OriginalBytes: int64(len(content)), ShownBytes: int64(shown),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.insert(ctx, rec, hex); err != nil {
		return record.Artifact{}, err
	}
	s.sweep(ctx)
	rec.Content = ""
	return rec, nil
}

// insert adds a record as the newest, in the place of one with the same URI.
func (s *Store) insert(ctx context.Context, rec record.Artifact, hex string) error {
	it := &item{rec, hex, int64(len(rec.Content))}
	if rec.Content == "" {
		it.size = rec.OriginalBytes
	}
	if s.conf.Blobs != nil && rec.Content != "" {
		if err := s.conf.Blobs.Put(ctx, hex, []byte(rec.Content)); err != nil {
			return err
		}
		it.rec.Content = ""
	}
	if old := s.byURI[rec.ArtifactURI]; old != nil {
		s.drop(old)
	}
	s.byURI[rec.ArtifactURI] = s.order.PushBack(it)
	s.refs[hex]++
	delete(s.stale, hex)
	s.bytes += it.size
	for s.order.Len() > 1 && (s.order.Len() > s.conf.MaxCount || s.bytes > s.conf.MaxBytes) {
		s.drop(s.order.Front())
	}
	return nil
}

func (s *Store) drop(e *list.Element) {
	it := s.order.Remove(e).(*item)
	delete(s.byURI, it.rec.ArtifactURI)
	s.bytes -= it.size
	s.refs[it.digest]--
	if s.refs[it.digest] == 0 {
		delete(s.refs, it.digest)
		s.stale[it.digest] = true
	}
}

// sweep deletes the blobs that nothing names any more. One that cannot be deleted now
// stays on the list and is tried again.
func (s *Store) sweep(ctx context.Context) {
	for hex := range s.stale {
		if s.conf.Blobs == nil || hex == "" || s.conf.Blobs.Delete(ctx, hex) == nil {
			delete(s.stale, hex)
		}
	}
}

// Get gives the content of an artifact; fault.NotFound if there is none, or no more.
func (s *Store) Get(ctx context.Context, uri string) (string, error) {
	s.mu.Lock()
	e := s.byURI[uri]
	if e == nil {
		s.mu.Unlock()
		return "", fault.New(fault.NotFound, "artifact.get", "no artifact %q in this session; it may have given way to newer ones", uri)
	}
	it := *e.Value.(*item)
	s.mu.Unlock()
	return s.load(ctx, it)
}

// Record gives an artifact with its content; fault.NotFound as Get.
func (s *Store) Record(ctx context.Context, uri string) (record.Artifact, error) {
	content, err := s.Get(ctx, uri)
	if err != nil {
		return record.Artifact{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.byURI[uri]
	if e == nil {
		return record.Artifact{}, fault.New(fault.NotFound, "artifact.get", "artifact %q has given way to newer ones", uri)
	}
	rec := e.Value.(*item).rec
	rec.Content = content
	return rec, nil
}

func (s *Store) load(ctx context.Context, it item) (string, error) {
	if it.rec.Content != "" || it.size == 0 {
		return it.rec.Content, nil
	}
	if s.conf.Blobs == nil || it.digest == "" {
		return "", fault.New(fault.NotFound, "artifact.get", "the content of artifact %q was not kept", it.rec.ArtifactURI)
	}
	data, err := s.conf.Blobs.Get(ctx, it.digest)
	if err != nil {
		return "", err
	}
	if content := string(data); digest(content) == it.digest {
		return content, nil
	}
	return "", fault.New(fault.IO, "artifact.get", "the stored content of artifact %q is damaged", it.rec.ArtifactURI)
}

// All gives every artifact with its content, oldest first, for a snapshot. One whose
// content is gone comes without it.
func (s *Store) All(ctx context.Context) ([]record.Artifact, error) {
	s.mu.Lock()
	items := make([]item, 0, s.order.Len())
	for e := s.order.Front(); e != nil; e = e.Next() {
		items = append(items, *e.Value.(*item))
	}
	s.mu.Unlock()
	list := make([]record.Artifact, 0, len(items))
	for _, it := range items {
		content, err := s.load(ctx, it)
		if err != nil && fault.KindOf(err) != fault.NotFound {
			return nil, err
		}
		it.rec.Content = content
		list = append(list, it.rec)
	}
	return list, nil
}

// Restore puts back what a snapshot or a journal holds, oldest first. Contents are
// redacted again, since older programs kept them as they were. The limits rise if a
// snapshot's artifacts need more room.
func (s *Store) Restore(ctx context.Context, records []record.Artifact) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	count, bytes := 0, int64(0)
	for _, rec := range records {
		if rec.Content != "" { // a journal's records have none, and what they name may have given way
			count++
			bytes += int64(len(rec.Content))
		}
	}
	s.conf.MaxCount, s.conf.MaxBytes = max(s.conf.MaxCount, count), max(s.conf.MaxBytes, bytes)
	for _, rec := range records {
		if rec.ArtifactURI == "" || rec.OriginalBytes < 0 || rec.ShownBytes < 0 {
			return fault.Of(fault.CodeSerialization, "artifact.restore", "artifact record %q without a URI or with a negative size", rec.ArtifactID)
		}
		hex := named(rec.ArtifactURI)
		if rec.Content != "" {
			rec.Content = s.conf.Redact(text(rec.Content))
			hex = digest(rec.Content)
		}
		if err := s.insert(ctx, rec, hex); err != nil {
			return err
		}
	}
	s.sweep(ctx)
	return nil
}

// named gives the digest that a URI ends with, empty if it ends with none.
func named(uri string) string {
	last := uri[strings.LastIndexByte(uri, '/')+1:]
	if b, err := hex.DecodeString(last); err != nil || len(b) != sha256.Size || strings.ToLower(last) != last {
		return ""
	}
	return last
}

func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
