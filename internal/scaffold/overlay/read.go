package overlay

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// readFile reads a file that may have grown, or become something else, since it was looked at.
func readFile(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%q is not a file", name))
	}
	return readBounded(f, name)
}

func readBounded(r io.Reader, name string) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err == nil && len(data) > maxFileBytes {
		err = fmt.Errorf("file %s has more than %d bytes", name, maxFileBytes)
	}
	return data, err
}
