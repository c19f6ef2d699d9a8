// Package file keeps sessions in a folder of the local disk: the snapshot in the
// layout of A3S Code 6.x, which those programs can read, and beside it a journal of
// the facts since. It owns the files and their formats; what a fact says is record's,
// when one is written is session's. Floor 8.
//
// # Folders
//
//	<dir>/<sanitised id>.json             snapshot of old programs; read, never written
//	<dir>/v1/sessions/id_<b64>.json       snapshot, pretty JSON
//	<dir>/v1/journal/id_<b64>/lock        flock of the one writer; says who that is
//	<dir>/v1/journal/id_<b64>/<gen>.log   facts since a snapshot
//	<dir>/v1/blobs/id_<b64>/<name>        big texts
//
// <b64> is the session id in base64url without padding, <gen> the generation in ten
// decimal digits. Folders have mode 0700, files 0600. A name with '~' or the ending
// .tmp is a file in the making. What cannot be used is never thrown away silently:
//
//	<gen>.log.bad-<n>     the bytes of <gen>.log from its first broken frame on
//	<gen>.log.aside-<n>   a log that follows neither the snapshot nor another log
//
// # A log
//
// A log is a row of frames. All numbers are little endian.
//
//	+0               +4               +8
//	+----------------+----------------+------------------------+
//	| u32 length     | u32 crc32c     | length bytes           |
//	+----------------+----------------+------------------------+
//	  1 .. 268435456   of the bytes
//
// The first frame is the header, a JSON object:
//
//	format           "a3s-journal"
//	version          1
//	session_id       the session
//	snapshot_sha256  64 hex digits: the SHA-256 of the snapshot file this log follows,
//	                 all zeros if it follows none
//	predecessor      file name of the log before it, or ""
//	created_ms       Unix milliseconds
//
// Every other frame is one fact. A length of 0 is never written, so that a hole of
// zeros, which a power loss can leave, is no frame.
//
// # Reading
//
// The facts of a session are those of the newest log whose snapshot_sha256 is the
// digest of the snapshot file, and of the logs that follow it by their predecessor.
// Logs before it are removed: a crash kept them after a save. Any other log is set
// aside, unless it has no facts.
//
// A last frame that is short or has a wrong checksum, or zeros in its place, with no
// good frame behind it, is what a crash makes of the last write: it is cut off. Any
// other broken frame is damage: everything from it on is set aside.
//
// # Saving
//
//	flush the log; create and flush the next log (digest of the new snapshot)
//	write and flush the snapshot under a temporary name; rename it; flush the folder
//	remove the old logs
//
// Before the rename the old snapshot and its log, then its empty successor, are read;
// after it the new snapshot and the new log.
package file
