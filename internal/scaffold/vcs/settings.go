package vcs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/gcfg"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

// Settings are what git knows about the person.
type Settings struct {
	Author    object.Signature
	Committer object.Signature
	Branch    string // of new repositories
	// Missing says what keeps git from naming author and committer; it is empty when both are complete.
	Missing string
}

// ReadSettings looks where git looks: in the environment env, and in the system's, the person's and the repository's
// configuration with their includes. The system's file is /etc/gitconfig. dotGit is the repository's directory, which
// need not exist. now dates what the environment does not.
func ReadSettings(env func(string) string, dotGit string, now time.Time) Settings {
	s := settings{env: env, home: home(env), dotGit: dotGit}
	for _, file := range s.files() {
		s.read(file)
	}
	s.readEnv()
	branch := s.values["init.defaultbranch"]
	if branch == "" || plumbing.NewBranchReferenceName(branch).Validate() != nil {
		branch = "main"
	}
	out := Settings{
		Author:    s.person("AUTHOR", now),
		Committer: s.person("COMMITTER", now),
		Branch:    branch,
	}
	switch {
	case complete(out.Author) && complete(out.Committer):
	case len(s.faults) > 0:
		out.Missing = "git's configuration cannot be read: " + errors.Join(s.faults...).Error()
	case out.Author.Name == "" || out.Committer.Name == "":
		out.Missing = "git does not know your name"
	default:
		out.Missing = "git does not know your e-mail address"
	}
	return out
}

func complete(s object.Signature) bool { return s.Name != "" && s.Email != "" }

func home(env func(string) string) string {
	if dir := env("HOME"); dir != "" || runtime.GOOS != "windows" {
		return dir
	}
	return env("USERPROFILE")
}

// settings reads configuration; a later value replaces an earlier one.
type settings struct {
	env    func(string) string
	home   string
	dotGit string
	values map[string]string // by section.key in lower case
	faults []error
	depth  int // of includes
}

func (s *settings) files() []string {
	var files []string
	if off, _ := strconv.ParseBool(s.env("GIT_CONFIG_NOSYSTEM")); !off {
		system := s.env("GIT_CONFIG_SYSTEM")
		if system == "" {
			system = "/etc/gitconfig"
		}
		files = append(files, system)
	}
	switch global, xdg := s.env("GIT_CONFIG_GLOBAL"), s.env("XDG_CONFIG_HOME"); {
	case global != "":
		files = append(files, global)
	default:
		if xdg == "" && s.home != "" {
			xdg = filepath.Join(s.home, ".config")
		}
		if xdg != "" {
			files = append(files, filepath.Join(xdg, "git", "config"))
		}
		if s.home != "" {
			files = append(files, filepath.Join(s.home, ".gitconfig"))
		}
	}
	return append(files, filepath.Join(s.dotGit, "config"))
}

// maxIncludes is git's own limit to the depth of includes.
const maxIncludes = 10

func (s *settings) read(file string) {
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		s.faults = append(s.faults, err)
		return
	}
	err = gcfg.ReadWithCallback(bytes.NewReader(data), func(section, sub, key, value string, _ bool) error {
		section, key = strings.ToLower(section), strings.ToLower(key)
		switch {
		case key == "":
		case key == "path" && (section == "include" || section == "includeif" && s.applies(sub, file)):
			s.include(value, file)
		case sub == "":
			s.set(section+"."+key, value)
		}
		return nil
	})
	if err != nil {
		s.faults = append(s.faults, fmt.Errorf("%s: %w", file, err))
	}
}

func (s *settings) set(key, value string) {
	if s.values == nil {
		s.values = map[string]string{}
	}
	s.values[key] = value
}

func (s *settings) include(name, from string) {
	if s.depth == maxIncludes {
		return
	}
	name = s.expand(name)
	if !filepath.IsAbs(name) {
		name = filepath.Join(filepath.Dir(from), name)
	}
	s.depth++
	s.read(name)
	s.depth--
}

func (s *settings) expand(name string) string {
	if rest, ok := strings.CutPrefix(name, "~/"); ok {
		return filepath.Join(s.home, rest)
	}
	return name
}

// applies decides the condition of an includeIf in the file from. Conditions on branches and remotes do not hold: a
// new repository has neither.
func (s *settings) applies(condition, from string) bool {
	pattern, ok := strings.CutPrefix(condition, "gitdir:")
	dir := filepath.ToSlash(s.dotGit)
	if !ok {
		if pattern, ok = strings.CutPrefix(condition, "gitdir/i:"); !ok {
			return false
		}
		pattern, dir = strings.ToLower(pattern), strings.ToLower(dir)
	}
	open := strings.HasSuffix(pattern, "/")
	switch {
	case strings.HasPrefix(pattern, "~/"):
		pattern = filepath.ToSlash(s.expand(pattern))
	case strings.HasPrefix(pattern, "./"):
		pattern = path.Join(filepath.ToSlash(filepath.Dir(from)), pattern)
	case !path.IsAbs(pattern) && !filepath.IsAbs(pattern):
		pattern = "**/" + pattern
	}
	pattern = strings.TrimSuffix(pattern, "/")
	if open {
		pattern += "/**"
	}
	return match(strings.Split(pattern, "/"), strings.Split(dir, "/"))
}

// match matches the elements of a path with those of a pattern, in which ** stands for any number of elements.
func match(pattern, elements []string) bool {
	if len(pattern) == 0 {
		return len(elements) == 0
	}
	if pattern[0] == "**" {
		for i := range len(elements) + 1 {
			if match(pattern[1:], elements[i:]) {
				return true
			}
		}
		return false
	}
	if len(elements) == 0 {
		return false
	}
	ok, err := path.Match(pattern[0], elements[0])
	return ok && err == nil && match(pattern[1:], elements[1:])
}

// readEnv reads the settings that git takes from GIT_CONFIG_COUNT, GIT_CONFIG_KEY_n and GIT_CONFIG_VALUE_n.
func (s *settings) readEnv() {
	count, _ := strconv.Atoi(s.env("GIT_CONFIG_COUNT"))
	for i := range count {
		n := strconv.Itoa(i)
		key := s.env("GIT_CONFIG_KEY_" + n)
		if key == "" {
			return
		}
		s.set(strings.ToLower(key), s.env("GIT_CONFIG_VALUE_"+n))
	}
}

// person is who git would name in role, AUTHOR or COMMITTER; what git does not know is empty.
func (s *settings) person(role string, now time.Time) object.Signature {
	section := strings.ToLower(role)
	first := func(values ...string) string {
		for _, v := range values {
			if v = clean(v); v != "" {
				return v
			}
		}
		return ""
	}
	sig := object.Signature{
		Name:  first(s.env("GIT_"+role+"_NAME"), s.values[section+".name"], s.values["user.name"]),
		Email: first(s.env("GIT_"+role+"_EMAIL"), s.values[section+".email"], s.values["user.email"], s.env("EMAIL")),
		When:  now,
	}
	if when, ok := parseDate(s.env("GIT_" + role + "_DATE")); ok {
		sig.When = when
	}
	return sig
}

// clean removes what git does not allow in names and addresses.
func clean(s string) string {
	s = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' || strings.ContainsRune(`.,:;<>"\'`, r) })
	return strings.Map(func(r rune) rune {
		if r == '<' || r == '>' || r < ' ' {
			return -1
		}
		return r
	}, s)
}

// parseDate reads the date formats of git that cannot be misread.
func parseDate(s string) (time.Time, bool) {
	seconds, zone, _ := strings.Cut(strings.TrimPrefix(s, "@"), " ")
	if n, err := strconv.ParseInt(seconds, 10, 64); err == nil {
		when := time.Unix(n, 0).UTC()
		if offset, err := time.Parse("-0700", zone); err == nil {
			when = when.In(offset.Location())
		}
		return when, true
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02 15:04:05 -0700", time.RFC1123Z} {
		if when, err := time.Parse(layout, s); err == nil {
			return when, true
		}
	}
	return time.Time{}, false
}
