package patch

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1" //nolint:gosec // git names blobs by it
	"encoding/hex"
	"fmt"
	"strings"
)

// writeBinary writes a change of data without lines such that git can apply it, and take it back.
func writeBinary(out *strings.Builder, old, now []byte) {
	fmt.Fprintf(out, "index %s..%s\nGIT binary patch\n", blob(old), blob(now))
	literal(out, now)
	literal(out, old)
}

// blob is git's name of a content, in full; nil is a missing file.
func blob(data []byte) string {
	if data == nil {
		return strings.Repeat("0", 2*sha1.Size)
	}
	h := sha1.New() //nolint:gosec // see above
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// literal writes data as git's binary patches do: compressed, in base 85, 52 bytes a line.
func literal(out *strings.Builder, data []byte) {
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	_, _ = w.Write(data) // a buffer takes everything
	_ = w.Close()
	fmt.Fprintf(out, "literal %d\n", len(data))
	for rest := packed.Bytes(); len(rest) > 0; {
		n := min(52, len(rest))
		length := byte('A' + n - 1)
		if n > 26 {
			length = byte('a' + n - 27)
		}
		out.WriteByte(length)
		encode85(out, rest[:n])
		out.WriteByte('\n')
		rest = rest[n:]
	}
	out.WriteByte('\n')
}

const alphabet85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

func encode85(out *strings.Builder, data []byte) {
	for len(data) > 0 {
		var word [4]byte
		data = data[copy(word[:], data):]
		value := uint32(word[0])<<24 | uint32(word[1])<<16 | uint32(word[2])<<8 | uint32(word[3])
		var digits [5]byte
		for i := len(digits) - 1; i >= 0; i-- {
			digits[i] = alphabet85[value%85]
			value /= 85
		}
		out.Write(digits[:])
	}
}
