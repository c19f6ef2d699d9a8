package archive

import (
	"fmt"
	"os"
	"path/filepath"
)

// Unpack writes the files of an archive into dir, which it makes.
func Unpack(name string, data []byte, dir string) error {
	entries, err := Read(name, data)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir) // refuses names that lead out of dir
	if err != nil {
		return err
	}
	defer root.Close()
	for _, e := range entries {
		if err := root.MkdirAll(filepath.Dir(e.Name), 0o755); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if e.Link != "" {
			err = root.Symlink(e.Link, e.Name)
		} else {
			err = root.WriteFile(e.Name, e.Data, e.Mode)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// Folder reads the files below dir as entries whose names begin with prefix.
func Folder(dir, prefix string) ([]Entry, error) {
	var entries []Entry
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		e := Entry{Name: prefix + filepath.ToSlash(rel), Mode: info.Mode()}
		if info.Mode()&os.ModeSymlink != 0 {
			e.Link, err = os.Readlink(path)
		} else {
			e.Data, err = os.ReadFile(path)
		}
		entries = append(entries, e)
		return err
	})
	return entries, err
}
