// Package vcs makes the first commit of a project without a git binary, and finds out what git would know about a
// directory: the repository around it, the person's identity, the name of a new branch.
//
// The commit is made in memory, as the files that belong below .git. Writing them together with the project is what
// keeps a new project all or nothing, and nothing of a person's set-up (hooks, signing, commit templates, GIT_DIR)
// takes part.
package vcs

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/idxfile"
	"github.com/go-git/go-git/v5/plumbing/format/index"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/famcp/famcp/internal/scaffold/render"
)

// Commit is a first commit.
type Commit struct {
	Branch    string // without refs/heads/
	Message   string
	Author    object.Signature
	Committer object.Signature
	Files     []render.File
}

// Stage returns what git adds for the files of c to an empty repository, relative to .git: one pack with the blobs
// and the index.
func (c Commit) Stage() ([]render.File, error) {
	b := newBuilder()
	if _, err := b.index(c.Files); err != nil {
		return nil, err
	}
	return b.files()
}

// Make is [Commit.Stage] with the commit and its branch; hash names the commit.
func (c Commit) Make() (files []render.File, hash string, err error) {
	b := newBuilder()
	tree, err := b.index(c.Files)
	if err != nil {
		return nil, "", err
	}
	commit, err := b.put(&object.Commit{
		Author:    c.Author,
		Committer: c.Committer,
		Message:   strings.TrimSpace(c.Message) + "\n",
		TreeHash:  tree,
	})
	if err != nil {
		return nil, "", err
	}
	if files, err = b.files(); err != nil {
		return nil, "", err
	}
	files = append(files, file("refs/heads/"+c.Branch, commit.String()+"\n"))
	return files, commit.String(), nil
}

// Init returns the files of a new repository on branch, relative to .git. fileMode says whether the file system
// keeps executable bits.
func Init(branch string, fileMode bool) []render.File {
	config := fmt.Sprintf("[core]\n\trepositoryformatversion = 0\n\tfilemode = %t\n\tbare = false\n\tlogallrefupdates = true\n", fileMode)
	return []render.File{
		file("HEAD", "ref: refs/heads/"+branch+"\n"),
		file("config", config),
		{Path: "refs/heads", Mode: fs.ModeDir | 0o755},
	}
}

func file(path, text string) render.File {
	return render.File{Path: path, Mode: 0o644, Data: []byte(text)}
}

// builder collects objects and the index.
type builder struct {
	objects *memory.Storage
	hashes  []plumbing.Hash
	entries index.Index
}

func newBuilder() *builder {
	return &builder{objects: memory.NewStorage(), entries: index.Index{Version: 2}}
}

// index adds files, and the trees above them, and returns the root tree.
func (b *builder) index(files []render.File) (plumbing.Hash, error) {
	trees := map[string]*object.Tree{".": {}}
	for _, f := range files {
		hash, err := b.store(plumbing.BlobObject, f.Data)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		mode := filemode.Regular
		if f.Mode&0o100 != 0 {
			mode = filemode.Executable
		}
		// Without sizes and times, as after git read-tree: git compares the contents once and fills them in.
		b.entries.Entries = append(b.entries.Entries, &index.Entry{Name: f.Path, Hash: hash, Mode: mode})
		dir := directory(trees, path.Dir(f.Path))
		dir.Entries = append(dir.Entries, object.TreeEntry{Name: path.Base(f.Path), Mode: mode, Hash: hash})
	}
	// Deepest first, so that each tree's hash is known when its parent is made.
	dirs := make([]string, 0, len(trees))
	for dir := range trees {
		dirs = append(dirs, dir)
	}
	slices.SortFunc(dirs, func(x, y string) int {
		return cmp.Or(cmp.Compare(depth(y), depth(x)), cmp.Compare(x, y))
	})
	var root plumbing.Hash
	for _, dir := range dirs {
		tree := trees[dir]
		slices.SortFunc(tree.Entries, func(x, y object.TreeEntry) int { return cmp.Compare(sortKey(x), sortKey(y)) })
		hash, err := b.put(tree)
		if err != nil {
			return plumbing.ZeroHash, err
		}
		if dir == "." {
			root = hash
			break
		}
		parent := trees[path.Dir(dir)]
		parent.Entries = append(parent.Entries, object.TreeEntry{Name: path.Base(dir), Mode: filemode.Dir, Hash: hash})
	}
	return root, nil
}

// directory is the tree at dir; it and those above it are made when they are new.
func directory(trees map[string]*object.Tree, dir string) *object.Tree {
	if tree, ok := trees[dir]; ok {
		return tree
	}
	directory(trees, path.Dir(dir))
	trees[dir] = &object.Tree{}
	return trees[dir]
}

func depth(dir string) int {
	if dir == "." {
		return 0
	}
	return 1 + strings.Count(dir, "/")
}

// sortKey is what git sorts the entries of a tree by.
func sortKey(e object.TreeEntry) string {
	if e.Mode == filemode.Dir {
		return e.Name + "/"
	}
	return e.Name
}

type encoder interface {
	Encode(plumbing.EncodedObject) error
}

func (b *builder) put(o encoder) (plumbing.Hash, error) {
	encoded := b.objects.NewEncodedObject()
	if err := o.Encode(encoded); err != nil {
		return plumbing.ZeroHash, err
	}
	return b.add(encoded)
}

func (b *builder) store(kind plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	encoded := b.objects.NewEncodedObject()
	encoded.SetType(kind)
	w, err := encoded.Writer()
	if err != nil {
		return plumbing.ZeroHash, err
	}
	if _, err := w.Write(data); err != nil {
		return plumbing.ZeroHash, err
	}
	return b.add(encoded)
}

func (b *builder) add(o plumbing.EncodedObject) (plumbing.Hash, error) {
	if hash := o.Hash(); b.objects.HasEncodedObject(hash) == nil { // two files of one content
		return hash, nil
	}
	hash, err := b.objects.SetEncodedObject(o)
	b.hashes = append(b.hashes, hash)
	return hash, err
}

// files are the pack, its index, and the index of the work tree.
func (b *builder) files() ([]render.File, error) {
	var pack, packIndex, worktree bytes.Buffer
	sum, err := packfile.NewEncoder(&pack, b.objects, false).Encode(b.hashes, 0)
	if err != nil {
		return nil, fmt.Errorf("packing the first commit: %w", err)
	}
	offsets := new(idxfile.Writer)
	parser, err := packfile.NewParser(packfile.NewScanner(bytes.NewReader(pack.Bytes())), offsets)
	if err != nil {
		return nil, fmt.Errorf("packing the first commit: %w", err)
	}
	if _, err := parser.Parse(); err != nil {
		return nil, fmt.Errorf("packing the first commit: %w", err)
	}
	found, err := offsets.Index()
	if err != nil {
		return nil, fmt.Errorf("packing the first commit: %w", err)
	}
	if _, err := idxfile.NewEncoder(&packIndex).Encode(found); err != nil {
		return nil, fmt.Errorf("packing the first commit: %w", err)
	}
	if err := index.NewEncoder(&worktree).Encode(&b.entries); err != nil {
		return nil, fmt.Errorf("indexing the first commit: %w", err)
	}
	name := "objects/pack/pack-" + sum.String()
	return []render.File{
		{Path: name + ".pack", Mode: 0o444, Data: pack.Bytes()},
		{Path: name + ".idx", Mode: 0o444, Data: packIndex.Bytes()},
		{Path: "index", Mode: 0o644, Data: worktree.Bytes()},
	}, nil
}
