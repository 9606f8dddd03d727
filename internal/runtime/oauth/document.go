package oauth

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
)

// Bounds of fetching Client ID Metadata Documents: anybody can make this server
// fetch one.
const (
	maxDocument     = 16 << 10
	maxDocuments    = 100 // kept
	maxFetches      = 4   // at once
	maxRedirects    = 50  // redirect URIs of a client
	maxClientName   = 80  // characters
	documentTimeout = 5 * time.Second
	documentAge     = 5 * time.Minute // kept when its server says nothing
	maxDocumentAge  = time.Hour
)

var errBusy = errors.New("too many clients are being looked up; try again in a moment")

// documents fetches what clients publish about themselves under their id
// (draft-ietf-oauth-client-id-metadata-document). It keeps a foreign URL from
// reaching what this machine can and the one who asks cannot (§6.5 there):
// names are resolved here, every address must be a public one, and what is
// dialled is the address that was looked at.
type documents struct {
	http    *http.Client
	resolve func(context.Context, string) ([]netip.Addr, error)
	public  func(netip.Addr) bool
	slots   chan struct{}

	mu   sync.Mutex
	kept map[string]keptClient
}

type keptClient struct {
	client  *client
	expires time.Time
}

func newDocuments() *documents {
	d := &documents{
		resolve: func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		},
		public: isPublic,
		slots:  make(chan struct{}, maxFetches),
		kept:   map[string]keptClient{},
	}
	d.http = &http.Client{
		Timeout: documentTimeout,
		// A redirect would lead anywhere; the id is the document's own address.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{
			DialContext: d.dial, DisableKeepAlives: true, MaxResponseHeaderBytes: 8 << 10,
			TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12},
		},
	}
	return d
}

// notPublic are networks that lead into a machine or its surroundings, beside
// those that package netip knows. Those that carry an IPv4 address are out as a
// whole.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"),
	netip.MustParsePrefix("100.64.0.0/10"),
	netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"),
	netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"),
	netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("::/96"),
	netip.MustParsePrefix("64:ff9b::/96"),
	netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"),
	netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("fec0::/10"),
}

func isPublic(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	return a.IsGlobalUnicast() && !a.IsPrivate() &&
		!slices.ContainsFunc(notPublic, func(n netip.Prefix) bool { return n.Contains(a) })
}

func (d *documents) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addrs, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	if len(addrs) == 0 {
		return nil, errors.New("the name has no address")
	}
	for _, a := range addrs {
		if !d.public(a) {
			return nil, errors.New("the name leads to an address that is not public")
		}
	}
	var dialer net.Dialer
	return dialer.DialContext(ctx, network, net.JoinHostPort(addrs[0].Unmap().String(), port))
}

// checkClientID returns id when it is one that a document may have (§3 there).
func checkClientID(id string) bool {
	u, err := url.Parse(id)
	return err == nil && len(id) <= maxURI && u.Scheme == "https" && u.Hostname() != "" && u.User == nil &&
		!strings.Contains(id, "#") && u.Path != "" && path.Clean(u.Path) == strings.TrimSuffix(u.Path, "/") && u.Path != "/"
}

// client returns the client that publishes its document at id. The error is
// safe to show.
func (d *documents) client(ctx context.Context, id string) (*client, error) {
	if !checkClientID(id) {
		return nil, errors.New("it is neither known here nor the https URL of a client's metadata document")
	}
	now := time.Now()
	d.mu.Lock()
	kept, ok := d.kept[id]
	d.mu.Unlock()
	if ok && now.Before(kept.expires) {
		return kept.client, nil
	}
	select {
	case d.slots <- struct{}{}:
		defer func() { <-d.slots }()
	default:
		return nil, errBusy
	}
	c, age, err := d.fetch(ctx, id)
	if err != nil {
		return nil, err
	}
	if age > 0 {
		d.keep(id, keptClient{c, now.Add(age)})
	}
	return c, nil
}

// keep stores c, in place of one that has expired or any other when there are
// too many.
func (d *documents) keep(id string, c keptClient) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now := time.Now()
	for id, old := range d.kept {
		if !now.Before(old.expires) {
			delete(d.kept, id)
		}
	}
	for id := range d.kept {
		if len(d.kept) < maxDocuments {
			break
		}
		delete(d.kept, id)
	}
	d.kept[id] = c
}

// fetch returns the client that publishes its document at id, and for how long
// it may be kept.
func (d *documents) fetch(ctx context.Context, id string) (*client, time.Duration, error) {
	// What happened on the way would tell a caller about this server's network.
	unreachable := errors.New("its metadata document cannot be fetched")
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, id, http.NoBody)
	if err != nil {
		return nil, 0, unreachable
	}
	req.Header.Set("Accept", "application/json")
	resp, err := d.http.Do(req)
	if err != nil {
		return nil, 0, unreachable
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, 0, unreachable
	}
	if kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return nil, 0, errors.New("its metadata document is not JSON")
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxDocument+1))
	if err != nil {
		return nil, 0, unreachable
	}
	if len(body) > maxDocument {
		return nil, 0, fmt.Errorf("its metadata document is longer than %d bytes", maxDocument)
	}
	c, err := parseDocument(id, body)
	return c, cacheAge(resp.Header.Get("Cache-Control")), err
}

func parseDocument(id string, body []byte) (*client, error) {
	var doc struct {
		ID        string   `json:"client_id"`
		Name      string   `json:"client_name"`
		Redirects []string `json:"redirect_uris"`
		Auth      string   `json:"token_endpoint_auth_method"`
		Grants    []string `json:"grant_types"`
	}
	if json.Unmarshal(body, &doc) != nil {
		return nil, errors.New("its metadata document is not JSON of the right form")
	}
	name := readable(doc.Name)
	switch {
	case doc.ID != id:
		return nil, errors.New("its metadata document is that of another client_id")
	case name == "":
		return nil, errors.New("its metadata document has no client_name")
	case len(doc.Redirects) == 0 || len(doc.Redirects) > maxRedirects:
		return nil, fmt.Errorf("its metadata document needs 1 to %d redirect_uris", maxRedirects)
	case doc.Auth != "" && doc.Auth != "none":
		return nil, errors.New("only public clients are served: token_endpoint_auth_method must be none")
	case len(doc.Grants) > 0 && !slices.Contains(doc.Grants, grantCode):
		return nil, errors.New("its metadata document does not allow the grant authorization_code")
	}
	return &client{id: id, name: name, redirects: doc.Redirects}, nil
}

// readable returns text as one short line, without what could turn or hide
// other text on a page.
func readable(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if runes := []rune(text); len(runes) > maxClientName {
		text = string(runes[:maxClientName]) + "…"
	}
	return text
}

// cacheAge is how long a document may be kept.
func cacheAge(control string) time.Duration {
	age := documentAge
	for directive := range strings.SplitSeq(control, ",") {
		name, value, _ := strings.Cut(strings.ToLower(strings.TrimSpace(directive)), "=")
		switch name {
		case "no-store", "no-cache":
			return 0
		case "max-age":
			if s, err := strconv.ParseUint(strings.Trim(value, `"`), 10, 31); err == nil {
				age = time.Duration(s) * time.Second
			}
		}
	}
	return min(age, maxDocumentAge)
}
