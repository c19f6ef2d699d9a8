package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"time"
)

// Version makes the token that back-ends without tokens of their own put into
// Info.Version: modification time, size and the first half of the content's SHA-256.
//
// The hash is there because file systems round times; it is SHA-256 because two
// contents that somebody crafted to look alike must still differ, and because it runs
// at the speed of the disk on every processor we ship for.
func Version(modified time.Time, size int64, sum [sha256.Size]byte) string {
	return strconv.FormatInt(modified.UnixNano(), 36) + "-" + strconv.FormatInt(size, 36) + "-" + hex.EncodeToString(sum[:sha256.Size/2])
}

// Resolver is the capability of a workspace whose paths may lead through links.
type Resolver interface {
	// Resolve gives the clean path that is really reached when path is opened, with
	// every link replaced; what is not there yet keeps its name. Rules about files are
	// to be asked with this path too. Errors are those of Stat, but for NotFound.
	Resolve(path string) (string, error)
}
