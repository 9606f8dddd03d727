// Package oauth lets clients find out where to get a token for this server, and
// is, for trying them, the place to get it.
//
// The discovery documents are those of RFC 9728 (protected resource), RFC 8414
// and OpenID Connect Discovery (authorization server), and the key set of RFC
// 7517. Every URL in them comes from the configured public URL: nothing that a
// request says changes an answer, so nobody can have a cache or a client
// believe in another server.
//
// The development identity provider serves /oauth/authorize and /oauth/token:
// the authorization code grant with PKCE through a plain consent page, client
// credentials, and passwords. It is no product: it has no users but the one of
// the Basic scheme, no refresh tokens and no registration, and forgets all with
// its process.
package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/famcp/famcp/internal/runtime/front"
	"github.com/famcp/famcp/internal/runtime/respond"
	"github.com/famcp/famcp/internal/runtime/token"
)

const (
	wellKnownResource = "/.well-known/oauth-protected-resource"
	wellKnownServer   = "/.well-known/oauth-authorization-server"
	wellKnownOpenID   = "/.well-known/openid-configuration"
	keysPath          = "/.well-known/jwks.json"
	authorizePath     = "/oauth/authorize"
	tokenPath         = "/oauth/token"
)

// Config configures the endpoints of [Routes].
type Config struct {
	Tokens    *token.Tokens   // required, of an asymmetric mode
	Algorithm token.Algorithm // of the keys; empty means ES256
	PublicURL string          // required: where clients reach the server, without /mcp
	Title     string          // the server's name for people
	Scopes    func() []string // what registered features require, sorted, in a slice of its own; nil means none

	// Server says that this server's own keys sign its tokens (the modes
	// embedded and localKey), so that it also describes itself as an
	// authorization server.
	Server bool

	Provider *Provider // nil serves no identity provider
}

// Routes returns the endpoints. All of them are public.
func Routes(cfg Config) ([]front.Route, error) {
	e, err := newEndpoints(cfg)
	if err != nil {
		return nil, err
	}
	return e.routes(), nil
}

// endpoints serve the documents.
type endpoints struct {
	cfg      Config
	base     base
	provider *provider // nil for none
}

func newEndpoints(cfg Config) (*endpoints, error) {
	base, err := parseBase(cfg.PublicURL)
	if err != nil {
		return nil, err
	}
	if cfg.Scopes == nil {
		cfg.Scopes = func() []string { return nil }
	}
	if cfg.Algorithm == "" {
		cfg.Algorithm = token.ES256
	}
	e := &endpoints{cfg: cfg, base: base}
	if cfg.Provider == nil {
		return e, nil
	}
	if !cfg.Server || !cfg.Tokens.CanIssue() {
		return nil, errors.New("oauth: the identity provider needs a mode that makes tokens")
	}
	e.provider, err = newProvider(*cfg.Provider, e)
	return e, err
}

func (e *endpoints) routes() []front.Route {
	serve := map[string]http.HandlerFunc{
		wellKnownResource:              e.document(e.resource(e.base.String())),
		wellKnownResource + front.Path: e.document(e.resource(e.base.mcp())),
	}
	// Where a path is left to this server, and where a proxy takes it away.
	serve[wellKnownResource+e.base.path] = serve[wellKnownResource]
	serve[wellKnownResource+e.base.path+front.Path] = e.document(e.resource(e.base.mcp()))
	if e.cfg.Server {
		for _, path := range []string{wellKnownServer, wellKnownOpenID} {
			serve[path] = e.document(e.server)
			serve[path+e.base.path] = serve[path]
		}
		serve[keysPath] = e.document(e.keys)
	}
	if e.provider != nil {
		serve[authorizePath] = e.provider.serveAuthorize
		serve[tokenPath] = e.provider.serveToken
	}
	var routes []front.Route
	for _, pattern := range slices.Sorted(maps.Keys(serve)) {
		routes = append(routes, front.Route{Pattern: pattern, Handler: serve[pattern], Public: true})
	}
	return routes
}

// ResourceMetadataURL is the address of the metadata of the endpoint /mcp of a
// server with this public URL, for challenges (RFC 9728 §5.1).
func ResourceMetadataURL(publicURL string) (string, error) {
	base, err := parseBase(publicURL)
	if err != nil {
		return "", err
	}
	return base.origin + wellKnownResource + base.path + front.Path, nil
}

// base is a public URL.
type base struct {
	origin string
	path   string // "" or "/a/b"
}

func parseBase(text string) (base, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return base{}, fmt.Errorf("webServer.publicUrl: %q is not a URL such as https://mcp.example.com", text)
	}
	return base{
		origin: strings.ToLower(u.Scheme + "://" + u.Host),
		path:   strings.TrimRight(u.EscapedPath(), "/"),
	}, nil
}

func (b base) String() string { return b.origin + b.path }
func (b base) mcp() string    { return b.String() + front.Path }

// document serves what make returns. Clients may keep it for five minutes:
// features, and with them scopes, come and go.
func (e *endpoints) document(build func() (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !respond.Methods(w, r, http.MethodGet) {
			return
		}
		v, err := build()
		if err != nil {
			respond.Error(w, http.StatusServiceUnavailable, "the keys cannot be read now; try again later")
			return
		}
		w.Header().Set("Cache-Control", "public, max-age=300")
		respond.JSON(w, http.StatusOK, v)
	}
}

// resource is the document of RFC 9728 §2 about the resource of that name.
func (e *endpoints) resource(name string) func() (any, error) {
	return func() (any, error) {
		return struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported,omitempty"`
			Methods  []string `json:"bearer_methods_supported"`
			Title    string   `json:"resource_name,omitempty"`
		}{name, []string{e.cfg.Tokens.Issuer()}, e.cfg.Scopes(), []string{"header"}, e.cfg.Title}, nil
	}
}

// keys is the key set of RFC 7517 §5.
func (e *endpoints) keys() (any, error) {
	set, err := e.cfg.Tokens.PublicJWKS()
	return json.RawMessage(set), err
}

// server is the document of RFC 8414 §2 and OpenID Connect Discovery §3.
func (e *endpoints) server() (any, error) {
	doc := serverMetadata{
		Issuer:        e.cfg.Tokens.Issuer(),
		Keys:          e.base.String() + keysPath,
		Scopes:        e.cfg.Scopes(),
		ResponseTypes: []string{},
		GrantTypes:    []string{},
		SubjectTypes:  []string{"public"},
		Algorithms:    []token.Algorithm{e.cfg.Algorithm},
	}
	if p := e.cfg.Provider; p != nil {
		doc.Authorize = e.base.String() + authorizePath
		doc.Token = e.base.String() + tokenPath
		doc.ResponseTypes = []string{"code"}
		doc.ResponseModes = []string{"query"}
		doc.GrantTypes = []string{grantCode}
		doc.ClientAuth = []string{"none"}
		doc.Challenges = []string{"S256"}
		doc.ClientDocuments = true
		doc.Iss = true
		if p.CheckPassword != nil {
			doc.GrantTypes = append(doc.GrantTypes, grantClient, grantPassword)
			doc.ClientAuth = append(doc.ClientAuth, "client_secret_basic", "client_secret_post")
		}
	}
	return doc, nil
}

type serverMetadata struct {
	Issuer          string            `json:"issuer"`
	Authorize       string            `json:"authorization_endpoint,omitempty"`
	Token           string            `json:"token_endpoint,omitempty"`
	Keys            string            `json:"jwks_uri"`
	Scopes          []string          `json:"scopes_supported,omitempty"`
	ResponseTypes   []string          `json:"response_types_supported"`
	ResponseModes   []string          `json:"response_modes_supported,omitempty"`
	GrantTypes      []string          `json:"grant_types_supported"`
	ClientAuth      []string          `json:"token_endpoint_auth_methods_supported,omitempty"`
	Challenges      []string          `json:"code_challenge_methods_supported,omitempty"`
	SubjectTypes    []string          `json:"subject_types_supported"`
	Algorithms      []token.Algorithm `json:"id_token_signing_alg_values_supported"`
	ClientDocuments bool              `json:"client_id_metadata_document_supported,omitempty"`
	Iss             bool              `json:"authorization_response_iss_parameter_supported,omitempty"`
}
