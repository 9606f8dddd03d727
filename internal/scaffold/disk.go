package scaffold

import (
	"errors"
	"io/fs"
	"os"
)

// disk is what Apply does to the file system; tests make it fail at any point.
type disk interface {
	Mkdir(path string) error                       // mode 0755 whatever the umask
	MkdirTemp(dir, pattern string) (string, error) // likewise; nothing is left on an error
	WriteFile(path string, data []byte, mode fs.FileMode) error
	Rename(from, to string) error
}

type realDisk struct{}

func (realDisk) MkdirTemp(dir, pattern string) (string, error) {
	path, err := os.MkdirTemp(dir, pattern)
	if err != nil {
		return "", err
	}
	if err := os.Chmod(path, 0o755); err != nil {
		return "", errors.Join(err, os.Remove(path))
	}
	return path, nil
}

func (realDisk) Mkdir(path string) error {
	if err := os.Mkdir(path, 0o755); err != nil {
		return err
	}
	return os.Chmod(path, 0o755)
}

func (realDisk) WriteFile(path string, data []byte, mode fs.FileMode) error {
	if err := os.WriteFile(path, data, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}

func (realDisk) Rename(from, to string) error { return os.Rename(from, to) }
