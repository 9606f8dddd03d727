package cli

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/famcp/famcp/internal/runtime/token"
	"github.com/famcp/famcp/internal/scaffold"
	"github.com/famcp/famcp/internal/scaffold/render"
)

const localConfig = `# Settings of this machine, over those of config/default.yaml. Git ignores this file, and nobody else should read it.

webServer:
  auth:
    jwtToken:
`

// newSecrets makes the files that let a new project start and make tokens on
// this machine: git ignores them, nobody else reads what is secret in them.
func newSecrets(a scaffold.Answers) ([]render.File, error) {
	secret := func(path string, data []byte) render.File {
		return render.File{Path: path, Mode: 0o600, Owner: render.Secret, Data: data}
	}
	switch a.Auth {
	case scaffold.AuthHS256:
		key := make([]byte, token.MinSecretBytes)
		_, _ = rand.Read(key) // never fails
		return []render.File{secret("config/local.yaml", fmt.Appendf(nil, "%s      encryptKey: %q\n", localConfig, hex.EncodeToString(key)))}, nil
	case scaffold.AuthLocalKey:
		pair, err := token.GenerateKeyPair(token.ES256)
		if err != nil {
			return nil, err
		}
		private, err1 := pair.PrivatePEM()
		public, err2 := pair.PublicPEM()
		return []render.File{
			secret("config/local.yaml", []byte(localConfig+"      privateKeyPath: keys/"+token.PrivateKeyName+"\n")),
			secret("keys/"+token.PrivateKeyName, private),
			{Path: "keys/" + token.PublicKeyName, Mode: 0o644, Owner: render.Secret, Data: public},
		}, errors.Join(err1, err2)
	}
	return nil, nil
}
