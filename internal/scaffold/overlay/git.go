package overlay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/famcp/famcp/internal/scaffold/render"
)

// repository is where a template is fetched from.
type repository struct {
	url     string // for go-git, without credentials
	shown   string // for people and the record
	ref     string
	local   string // directory of a file:// URL; empty otherwise
	auth    transport.AuthMethod
	secrets []string
}

var scpLike = regexp.MustCompile(`^[A-Za-z0-9._-]+@[A-Za-z0-9._-]+:`)

func isURL(spec string) bool { return strings.Contains(spec, "://") || scpLike.MatchString(spec) }

// parseURL takes spec apart. Its errors do not repeat it, for it may hold a password.
func parseURL(spec string) (*repository, error) {
	start := len(scpLike.FindString(spec))
	if scheme := strings.Index(spec, "://"); scheme >= 0 {
		start = scheme + len("://")
		slash := strings.IndexByte(spec[start:], '/')
		if slash < 0 {
			return nil, errors.New("the template's URL has no path; name a repository, such as https://example.com/team/template.git")
		}
		start += slash
	}
	r := &repository{}
	if at := strings.LastIndexByte(spec[start:], '@'); at >= 0 {
		spec, r.ref = spec[:start+at], spec[start+at+1:]
		if r.ref == "" || plumbing.NewBranchReferenceName(r.ref).Validate() != nil {
			return nil, errors.New("the template's URL ends in an @ without the name of a branch, tag or commit; name one or remove the @")
		}
	}
	r.url, r.shown = spec, spec
	if !strings.Contains(spec, "://") {
		return r, nil
	}
	u, err := url.Parse(spec)
	if err != nil {
		return nil, errors.New("the template's URL cannot be read; write it as https://host/path, ssh://git@host/path, git@host:path or file:///path")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the template's URL has a query or a fragment; give the address of a repository only")
	}
	password, hasPassword := u.User.Password()
	if hasPassword {
		r.secrets = append(r.secrets, password, url.QueryEscape(password), url.PathEscape(password))
	}
	switch u.Scheme {
	case "https", "http":
		if u.Scheme == "http" && !loopback(u.Hostname()) {
			return nil, errors.New("the template's URL is http://, where anybody on the way could change what is fetched; use https://")
		}
		if u.User != nil { // the name alone can be a token, too
			r.auth = &http.BasicAuth{Username: u.User.Username(), Password: password}
			r.secrets = append(r.secrets, u.User.String(), u.User.Username())
			u.User = nil
		}
	case "ssh":
		if hasPassword {
			return nil, errors.New("the template's URL has a password for ssh; use a key in the SSH agent")
		}
	case "file":
		if u.Host != "" && u.Host != "localhost" {
			return nil, errors.New("the template's URL is file:// on another machine; write file:///path")
		}
		r.local = u.Path
	default:
		return nil, fmt.Errorf("the template's URL begins with %q; use https://, ssh://, git@host:path or file://", u.Scheme+"://")
	}
	r.url, r.shown = u.String(), u.String()
	return r, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// redact is err without the credentials.
func (r *repository) redact(err error) error {
	text := err.Error()
	for _, secret := range r.secrets {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	if text == err.Error() {
		return err
	}
	return errors.New(text)
}

func (r *repository) fetch(ctx context.Context) (*Tree, error) {
	commit, err := r.commit(ctx)
	if err != nil {
		return nil, err
	}
	root, err := commit.Tree()
	if err != nil {
		return nil, err
	}
	var c collector
	if err := c.tree(ctx, root, "", 0); err != nil {
		return nil, err
	}
	files, err := c.sorted()
	return &Tree{Source: r.shown, Ref: r.ref, Commit: commit.Hash.String(), Files: files}, err
}

// commit finds the commit, in the repository on disk or in one fetched into memory.
func (r *repository) commit(ctx context.Context) (*object.Commit, error) {
	if r.local != "" {
		// Opened, not fetched: that would start git's own program with the repository's configuration.
		repo, err := git.PlainOpenWithOptions(r.local, &git.PlainOpenOptions{EnableDotGitCommonDir: true})
		if err != nil {
			return nil, err
		}
		revision := plumbing.Revision("HEAD")
		if r.ref != "" {
			revision = plumbing.Revision(r.ref)
		}
		hash, err := repo.ResolveRevision(revision)
		if err != nil {
			return nil, r.missing()
		}
		return repo.CommitObject(*hash)
	}
	store := &packStore{Storage: memory.NewStorage()}
	remote := git.NewRemote(store, &config.RemoteConfig{Name: "template", URLs: []string{r.url}})
	name, err := r.remoteName(ctx, remote)
	if err != nil {
		return nil, err
	}
	const local = plumbing.ReferenceName("refs/heads/template")
	err = remote.FetchContext(ctx, &git.FetchOptions{
		RefSpecs: []config.RefSpec{config.RefSpec(name + ":" + local.String())},
		Depth:    1,
		Tags:     git.NoTags,
		Auth:     r.auth,
	})
	if err != nil {
		return nil, err
	}
	ref, err := store.Reference(local)
	if err != nil {
		return nil, err
	}
	if tag, err := object.GetTag(store, ref.Hash()); err == nil {
		return tag.Commit()
	}
	return object.GetCommit(store, ref.Hash())
}

func (r *repository) missing() error {
	return fmt.Errorf("there is no branch, tag or commit %q; see git ls-remote for what there is", r.ref)
}

// remoteName is what to ask the remote repository for.
func (r *repository) remoteName(ctx context.Context, remote *git.Remote) (string, error) {
	refs, err := remote.ListContext(ctx, &git.ListOptions{Auth: r.auth})
	if err != nil {
		return "", err
	}
	if r.ref == "" {
		return "HEAD", nil
	}
	have := map[plumbing.ReferenceName]bool{}
	for _, ref := range refs {
		have[ref.Name()] = true
	}
	for _, name := range []plumbing.ReferenceName{plumbing.NewBranchReferenceName(r.ref), plumbing.NewTagReferenceName(r.ref)} {
		if have[name] {
			return name.String(), nil
		}
	}
	if plumbing.IsHash(r.ref) {
		return r.ref, nil
	}
	return "", r.missing()
}

// tree adds the files of t, which lies at dir.
func (c *collector) tree(ctx context.Context, t *object.Tree, dir string, depth int) error {
	const maxDepth = 50
	if depth > maxDepth {
		return fmt.Errorf("directories are nested more than %d deep; make the template flatter", maxDepth)
	}
	for _, entry := range t.Entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		name := dir + entry.Name
		switch entry.Mode {
		case filemode.Dir:
			if err := render.CheckPath(name + "/x"); err != nil {
				return err
			}
			sub, err := t.Tree(entry.Name)
			if err != nil {
				return err
			}
			if err := c.tree(ctx, sub, name+"/", depth+1); err != nil {
				return err
			}
		case filemode.Regular, filemode.Deprecated, filemode.Executable:
			if strings.ContainsRune(entry.Name, '/') {
				return render.CheckPath("../" + entry.Name)
			}
			f, err := t.TreeEntryFile(&entry)
			if err != nil {
				return err
			}
			if err := c.expect(name, f.Size); err != nil {
				return err
			}
			data, err := readBlob(f)
			if err != nil {
				return err
			}
			c.add(name, entry.Mode == filemode.Executable, data)
		default:
			return fmt.Errorf("%q is a link or a submodule; a template has files only", name)
		}
	}
	return nil
}

func readBlob(f *object.File) ([]byte, error) {
	r, err := f.Reader()
	if err != nil {
		return nil, err
	}
	data, err := readBounded(r, f.Name)
	return data, errors.Join(err, r.Close())
}

// packStore keeps a fetched repository in memory. It looks into a pack before it lets it be unpacked: what is small
// to send can be large.
type packStore struct{ *memory.Storage }

// PackfileWriter takes the pack that the other side sends.
func (s *packStore) PackfileWriter() (io.WriteCloser, error) { return &pack{store: s.Storage}, nil }

type pack struct {
	store *memory.Storage
	buf   bytes.Buffer
}

func (p *pack) Write(data []byte) (int, error) {
	if p.buf.Len()+len(data) > maxPackBytes {
		return 0, fmt.Errorf("the repository sends more than %d bytes; make the template smaller", maxPackBytes)
	}
	return p.buf.Write(data)
}

func (p *pack) Close() error {
	if p.buf.Len() == 0 {
		return nil
	}
	if err := checkPack(p.buf.Bytes()); err != nil {
		return err
	}
	// The parser takes a store that it does not have to write packs to.
	parser, err := packfile.NewParserWithStorage(packfile.NewScanner(bytes.NewReader(p.buf.Bytes())), struct{ storer.EncodedObjectStorer }{p.store})
	if err != nil {
		return err
	}
	_, err = parser.Parse()
	return err
}

// checkPack adds up what the objects of a pack unpack to.
func checkPack(data []byte) error {
	scanner := packfile.NewScanner(bytes.NewReader(data))
	_, objects, err := scanner.Header()
	if err != nil {
		return err
	}
	var total int64
	for range objects {
		h, err := scanner.NextObjectHeader()
		if err != nil {
			return err
		}
		size := h.Length
		if h.Length <= maxFileBytes {
			var content bytes.Buffer
			if _, _, err := scanner.NextObject(&content); err != nil {
				return err
			}
			if h.Type.IsDelta() {
				size += deltaTarget(content.Bytes())
			}
		}
		total += size
		if size > 2*maxFileBytes || h.Length > maxFileBytes || total > 2*maxTotalBytes {
			return errors.New("the repository unpacks to more than a template may have; leave large files out of it")
		}
	}
	return nil
}

// deltaTarget is the size of what a delta makes: the second of the two numbers that it begins with.
func deltaTarget(delta []byte) int64 {
	var size uint64
	for range 2 {
		size = 0
		for shift := 0; len(delta) > 0; shift += 7 {
			b := delta[0]
			delta = delta[1:]
			if shift < 63 {
				size |= uint64(b&0x7f) << shift
			}
			if b&0x80 == 0 {
				break
			}
		}
	}
	return int64(min(size, 1<<62)) //nolint:gosec // bounded a word before
}
