package merge_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/famcp/famcp/internal/scaffold/merge"
)

// TestGit compares with git merge-file over random edits, of texts whose lines are all different and of texts made of
// a few lines that repeat, where it is anybody's guess which line is which.
func TestGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git to compare with")
	}
	const rounds = 350
	for _, tt := range []struct {
		name     string
		alphabet int
		cautious int // merges, at most, where we see a conflict and git does not
	}{
		{"different lines", 1 << 30, 0},
		{"many lines", 60, 2},
		{"few lines", 6, 8},
		{"two lines", 2, 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			r := rand.New(rand.NewPCG(1, uint64(tt.alphabet)))
			var clean, conflicted, cautious int
			for range rounds {
				base := lines(r, tt.alphabet, r.IntN(40))
				ours, theirs := edit(r, tt.alphabet, base, r.IntN(5)), edit(r, tt.alphabet, base, r.IntN(5))
				b, o, th := []byte(strings.Join(base, "")), []byte(strings.Join(ours, "")), []byte(strings.Join(theirs, ""))
				want, gitClean := gitMerge(t, dir, b, o, th)
				got := merge.Merge(b, o, th, labels)
				switch {
				case !gitClean && got.Outcome == merge.Clean:
					t.Errorf("base %q\nours %q\ntheirs %q\nconflict in git\n%s\nclean here\n%s", base, ours, theirs, want, got.Text)
				case gitClean && got.Outcome == merge.Clean && !bytes.Equal(got.Text, want):
					t.Errorf("base %q\nours %q\ntheirs %q\ngit\n%s\nhere\n%s", base, ours, theirs, want, got.Text)
				case gitClean && got.Outcome == merge.Clean:
					clean++
				case gitClean:
					cautious++
				default:
					conflicted++
				}
				nothingLost(t, base, ours, theirs, got.Text)
			}
			t.Logf("%d clean, %d conflicts, %d conflicts that git does not see", clean, conflicted, cautious)
			if clean < rounds/10 || conflicted < rounds/10 {
				t.Error("one outcome was hardly seen")
			}
			if cautious > tt.cautious {
				t.Errorf("%d conflicts that git does not see, want at most %d", cautious, tt.cautious)
			}
		})
	}
}

// nothingLost checks that every line that a side added is in text.
func nothingLost(t testing.TB, base, ours, theirs []string, text []byte) {
	t.Helper()
	inText, inBase := count(strings.SplitAfter(string(text), "\n")), count(base)
	for _, side := range [][]string{ours, theirs} {
		for l, n := range count(side) {
			if n > inBase[l] && inText[l] < n-inBase[l] {
				t.Errorf("base %q\nours %q\ntheirs %q\nline %q was added %d times and is there %d times:\n%s",
					base, ours, theirs, l, n-inBase[l], inText[l], text)
			}
		}
	}
}

func count(lines []string) map[string]int {
	n := map[string]int{}
	for _, l := range lines {
		n[l]++
	}
	return n
}

// lines are n random lines out of so many different ones.
func lines(r *rand.Rand, alphabet, n int) []string {
	text := make([]string, n)
	for i := range text {
		text[i] = "line " + strconv.Itoa(r.IntN(alphabet)) + "\n"
	}
	return text
}

// edit is text after n random edits.
func edit(r *rand.Rand, alphabet int, text []string, n int) []string {
	text = slices.Clone(text)
	for range n {
		at := r.IntN(len(text) + 1)
		until := min(len(text), at+r.IntN(3))
		text = slices.Replace(text, at, until, lines(r, alphabet, r.IntN(3))...)
	}
	return text
}

// gitMerge is what git makes of it, and whether without a conflict.
func gitMerge(t testing.TB, dir string, base, ours, theirs []byte) ([]byte, bool) {
	t.Helper()
	for name, data := range map[string][]byte{"base": base, "ours": ours, "theirs": theirs} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "git", "merge-file", "-p", "-q", "ours", "base", "theirs")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() > 0 && exit.ExitCode() < 128 { // the number of conflicts
		return out, false
	}
	if err != nil {
		t.Fatal(err)
	}
	return out, true
}
