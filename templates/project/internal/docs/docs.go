// Package docs holds the Markdown documents built into the binary and finds sections in them.
package docs

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A Document is one Markdown file.
type Document struct {
	Name  string // file name in lower case, without directory and extension
	Title string // first heading, or Name
	Text  string
}

// A Hit is a section that matches a search.
type Hit struct {
	Document Document
	Heading  string
	Line     int // of the heading, counted from 1
	Snippet  string
}

// A Library is a fixed set of documents, safe for concurrent use. The zero value is empty.
type Library struct {
	documents []Document // sorted by name
	sections  []section
}

type section struct {
	document Document
	heading  string
	line     int
	lines    []string
}

// Load reads the Markdown files at the top of fsys and in its directory docs.
func Load(fsys fs.FS) (*Library, error) {
	lib := &Library{}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		files, err := fs.Glob(fsys, pattern)
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			text, err := fs.ReadFile(fsys, file)
			if err != nil {
				return nil, err
			}
			if err := lib.add(file, string(text)); err != nil {
				return nil, err
			}
		}
	}
	slices.SortFunc(lib.documents, func(a, b Document) int { return cmp.Compare(a.Name, b.Name) })
	return lib, nil
}

func (l *Library) add(file, text string) error {
	name := strings.ToLower(strings.TrimSuffix(path.Base(file), ".md"))
	if _, taken := l.Document(name); taken {
		return fmt.Errorf("document %s: another document is named %q; rename one", file, name)
	}
	doc := Document{Name: name, Title: name, Text: text}
	sections := split(text)
	if i := slices.IndexFunc(sections, func(s section) bool { return s.heading != "" }); i >= 0 {
		doc.Title = sections[i].heading
	}
	for i := range sections {
		sections[i].document = doc
	}
	l.documents = append(l.documents, doc)
	l.sections = append(l.sections, sections...)
	return nil
}

// split cuts a text before each heading. Lines that look like headings inside code fences are not.
func split(text string) []section {
	sections := []section{{line: 1}}
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		if marks, heading, ok := strings.Cut(line, " "); ok && !fenced && marks != "" && strings.Trim(marks, "#") == "" {
			sections = append(sections, section{heading: strings.TrimSpace(heading), line: i + 1})
		}
		last := &sections[len(sections)-1]
		last.lines = append(last.lines, line)
	}
	return sections
}

// Documents returns all documents, sorted by name.
func (l *Library) Documents() []Document { return slices.Clone(l.documents) }

// Document returns the document of that name.
func (l *Library) Document(name string) (Document, bool) {
	i := slices.IndexFunc(l.documents, func(d Document) bool { return d.Name == name })
	if i < 0 {
		return Document{}, false
	}
	return l.documents[i], true
}

// Search returns the sections that contain every word of query, whatever its case, the best match first. A query
// without words matches nothing.
func (l *Library) Search(query string) []Hit {
	words := strings.Fields(strings.ToLower(query))
	if len(words) == 0 {
		return nil
	}
	type scored struct {
		hit   Hit
		score int
	}
	var found []scored
	for _, s := range l.sections {
		if score := s.score(words); score > 0 {
			hit := Hit{Document: s.document, Heading: s.heading, Line: s.line, Snippet: s.snippet(words)}
			found = append(found, scored{hit, score})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
	hits := make([]Hit, len(found))
	for i, f := range found {
		hits[i] = f.hit
	}
	return hits
}

// score is 0 unless the section has all words; a word in the heading weighs more than one below it.
func (s section) score(words []string) int {
	const headingWeight = 5
	heading, text := strings.ToLower(s.heading), strings.ToLower(strings.Join(s.lines, "\n"))
	total := 0
	for _, w := range words {
		n := strings.Count(text, w)
		if n == 0 {
			return 0
		}
		total += n + headingWeight*strings.Count(heading, w)
	}
	return total
}

// snippet is the line with the most words, below the heading if possible.
func (s section) snippet(words []string) string {
	const maxRunes = 200
	best, most := "", -1
	for _, line := range s.lines {
		n := 0
		for _, w := range words {
			if strings.Contains(strings.ToLower(line), w) {
				n++
			}
		}
		if strings.HasPrefix(line, "#") {
			n = 0
		}
		if line = strings.TrimSpace(line); line != "" && n > most {
			best, most = line, n
		}
	}
	if runes := []rune(best); len(runes) > maxRunes {
		best = string(runes[:maxRunes]) + "…"
	}
	return best
}
