package op

import "time"

// CloseWithin bounds the operations that close until the returned function is called.
func CloseWithin(limit time.Duration) (back func()) {
	before := closeLimit
	closeLimit = limit
	return func() { closeLimit = before }
}
