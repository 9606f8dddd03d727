package famcp

import "github.com/famcp/famcp/internal/runtime/token"

// TokenConfig is what c says about tokens, for the server called server. The
// famcp command makes and checks tokens with it; nothing else should need it.
func TokenConfig(c *Config, server string) token.Config {
	jwt, revoked := &c.WebServer.Auth.JWT, &c.WebServer.Auth.Revoked
	tokens := make([]string, len(revoked.JWTTokens))
	for i, secret := range revoked.JWTTokens {
		tokens[i] = secret.Reveal()
	}
	return token.Config{
		Mode:           token.Mode(jwt.Mode),
		Secret:         []byte(jwt.EncryptKey.Reveal()),
		Algorithm:      token.Algorithm(jwt.Algorithm),
		KeyDir:         jwt.KeyStoragePath,
		PublicKeyFile:  jwt.PublicKeyPath,
		PrivateKeyFile: jwt.PrivateKeyPath,
		JWKSURL:        jwt.JWKSURI,

		ServerName:       server,
		PublicURL:        c.publicURL(),
		Issuer:           jwt.Issuer,
		ExpectedIssuer:   jwt.ExpectedIssuer,
		ExpectedAudience: jwt.ExpectedAudience,

		CheckServerName: jwt.CheckMCPName,
		CheckIP:         jwt.IsCheckIP,

		Revoked: token.Revoked{IDs: revoked.JTI, Tokens: tokens, Subjects: revoked.Users},

		CacheTTL:   jwt.JWKSCacheTTL,
		Cooldown:   jwt.JWKSCooldown,
		Skew:       jwt.ClockSkew,
		DefaultTTL: jwt.DefaultTTL,

		Production: c.Production(),
	}
}
