package scaffold

import (
	"fmt"
	"path"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/famcp/famcp/internal/scaffold/render"
	"github.com/famcp/famcp/internal/scaffold/vcs"
)

const commitMessage = "Create the project with famcp"

// firstCommit makes what belongs below .git, with paths relative to the project, and says in r what that is.
func (p *Plan) firstCommit(r *Result) ([]render.File, error) {
	dotGit := filepath.Join(physical(p.Target.Dir), ".git")
	settings := vcs.ReadSettings(p.opts.Env, dotGit, p.opts.Now())
	var files []render.File
	if p.Target.State == OnlyGit {
		branch, reason := vcs.Unborn(dotGit)
		if reason != "" {
			r.Hint = fmt.Sprintf("nothing was committed, because %s; review the project, then commit it with git", reason)
			return nil, nil
		}
		r.Branch = branch
	} else {
		if p.Target.Repository != "" {
			r.Hint = fmt.Sprintf("nothing was committed, because the project lies in the git repository %q; review it, then commit it with git",
				p.Target.Repository)
			return nil, nil
		}
		r.Branch = settings.Branch
		files = vcs.Init(r.Branch, runtime.GOOS != "windows")
	}
	commit := vcs.Commit{
		Branch:    r.Branch,
		Message:   commitMessage,
		Author:    settings.Author,
		Committer: settings.Committer,
		Files:     slices.DeleteFunc(slices.Clone(p.Files), func(f render.File) bool { return f.Owner == render.Secret }),
	}
	var made []render.File
	var err error
	if settings.Missing != "" {
		r.Hint = fmt.Sprintf("nothing was committed, because %s; the files are staged: set user.name and user.email with git config --global, "+
			"then run git commit -m %q", settings.Missing, commitMessage)
		made, err = commit.Stage()
	} else {
		made, r.Commit, err = commit.Make()
	}
	if err != nil {
		return nil, err
	}
	files = append(files, made...)
	for i := range files {
		files[i].Path = path.Join(".git", files[i].Path)
	}
	return files, nil
}
