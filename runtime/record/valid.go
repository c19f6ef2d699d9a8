package record

// maxPlainDepth bounds the nesting that validJSON follows.
const maxPlainDepth = 100

// validJSON says that b is one JSON value. It says no to what is nested deeper than
// maxPlainDepth; encoding/json decides on that. It is several times as fast as
// json.Valid on long strings, which is what a journal is made of.
func validJSON(b []byte) bool {
	i, ok := skipValue(b, skipBlanks(b, 0), 0)
	return ok && skipBlanks(b, i) == len(b)
}

func skipBlanks(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue gives the index behind the value that starts at b[i].
func skipValue(b []byte, i, depth int) (int, bool) {
	if i >= len(b) || depth > maxPlainDepth {
		return i, false
	}
	switch b[i] {
	case '"':
		return skipString(b, i)
	case '{':
		return skipList(b, i, '}', depth)
	case '[':
		return skipList(b, i, ']', depth)
	case 't':
		return skipWord(b, i, "true")
	case 'f':
		return skipWord(b, i, "false")
	case 'n':
		return skipWord(b, i, "null")
	}
	return skipNumber(b, i)
}

// skipList reads an object if it ends in '}', else an array.
func skipList(b []byte, i int, end byte, depth int) (int, bool) {
	i = skipBlanks(b, i+1)
	if i < len(b) && b[i] == end {
		return i + 1, true
	}
	for {
		var ok bool
		if end == '}' {
			if i >= len(b) || b[i] != '"' {
				return i, false
			}
			if i, ok = skipString(b, i); !ok {
				return i, false
			}
			i = skipBlanks(b, i)
			if i >= len(b) || b[i] != ':' {
				return i, false
			}
			i = skipBlanks(b, i+1)
		}
		if i, ok = skipValue(b, i, depth+1); !ok {
			return i, false
		}
		i = skipBlanks(b, i)
		if i >= len(b) || b[i] != ',' && b[i] != end {
			return i, false
		}
		if b[i] == end {
			return i + 1, true
		}
		i = skipBlanks(b, i+1)
	}
}

// special marks the bytes that end the plain part of a string.
var special = func() (t [256]bool) {
	for c := range 0x20 {
		t[c] = true
	}
	t['"'], t['\\'] = true, true
	return t
}()

func skipString(b []byte, i int) (int, bool) {
	for i++; i < len(b); i++ {
		if !special[b[i]] {
			continue
		}
		if b[i] == '"' {
			return i + 1, true
		}
		if b[i] != '\\' || i+1 >= len(b) {
			return i, false
		}
		i++
		switch b[i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		case 'u':
			for range 4 {
				i++
				if i >= len(b) || !isHex(b[i]) {
					return i, false
				}
			}
		default:
			return i, false
		}
	}
	return i, false
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func skipWord(b []byte, i int, word string) (int, bool) {
	if len(b)-i < len(word) || string(b[i:i+len(word)]) != word {
		return i, false
	}
	return i + len(word), true
}

func skipNumber(b []byte, i int) (int, bool) {
	if b[i] == '-' {
		i++
	}
	start := i
	i = skipDigits(b, i)
	if i == start || b[start] == '0' && i > start+1 {
		return i, false
	}
	if i < len(b) && b[i] == '.' {
		start = i + 1
		if i = skipDigits(b, start); i == start {
			return i, false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		i++
		if i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		start = i
		if i = skipDigits(b, i); i == start {
			return i, false
		}
	}
	return i, true
}

func skipDigits(b []byte, i int) int {
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		i++
	}
	return i
}
