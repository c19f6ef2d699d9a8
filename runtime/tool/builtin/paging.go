package builtin

import (
	"fmt"
	"strconv"
)

const (
	pageDefault = 200
	pageMax     = 1000
)

// pageArgs are the arguments of a tool that answers in pages. The cursor is the number
// of items before the page, as text, so that it can become something else one day.
type pageArgs struct {
	Limit  *whole `json:"limit"`
	Cursor string `json:"cursor"`
}

// pageOf is a page of a list of total items called things.
type pageOf struct {
	from, to, total    int
	requested, applied int
	things             string
}

func (a pageArgs) page(total int, things string) (pageOf, error) {
	p := pageOf{total: total, requested: a.Limit.or(pageDefault), things: things}
	p.applied = min(max(p.requested, 1), pageMax)
	if a.Cursor != "" {
		n, err := strconv.Atoi(a.Cursor)
		if err != nil || n < 0 || n > total {
			return p, invalid("cursor %q is not one of this list of %d %s", a.Cursor, total, things)
		}
		p.from = n
	}
	p.to = min(p.from+p.applied, total)
	return p, nil
}

// trailer tells how to go on; empty on the last page.
func (p pageOf) trailer() string {
	if p.to == p.total {
		return ""
	}
	return fmt.Sprintf("More %s available; continue with cursor=%d\n", p.things, p.to)
}

func (p pageOf) metadata() map[string]any {
	m := map[string]any{
		"offset": p.from, "requested_limit": p.requested, "applied_limit": p.applied, "returned_items": p.to - p.from,
		"total_items": p.total, "next_cursor": nil, "truncated": p.to < p.total, "limit_clamped": p.requested != p.applied,
	}
	if p.to < p.total {
		m["next_cursor"] = strconv.Itoa(p.to)
	}
	return m
}
