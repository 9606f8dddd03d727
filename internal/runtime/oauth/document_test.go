package oauth

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// documentServer is the server of example.com, which lives on this machine.
type documentServer struct {
	documents *documents
	id        string
	visits    atomic.Int32
}

func newDocumentServer(t *testing.T, handler func(id string) http.HandlerFunc) *documentServer {
	t.Helper()
	s := &documentServer{documents: newDocuments()}
	var serve http.HandlerFunc
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.visits.Add(1)
		serve(w, r)
	}))
	t.Cleanup(srv.Close)
	s.id = strings.Replace(srv.URL, "127.0.0.1", "example.com", 1) + "/app.json"
	serve = handler(s.id)
	s.documents.resolve = resolvesTo("127.0.0.1")
	s.documents.public = func(netip.Addr) bool { return true }
	s.documents.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: srv.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
	}
	return s
}

func resolvesTo(addrs ...string) func(context.Context, string) ([]netip.Addr, error) {
	var list []netip.Addr
	for _, a := range addrs {
		list = append(list, netip.MustParseAddr(a))
	}
	return func(context.Context, string) ([]netip.Addr, error) { return list, nil }
}

func serving(contentType, body string) func(string) http.HandlerFunc {
	return func(id string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			fmt.Fprint(w, strings.ReplaceAll(body, "ID", id))
		}
	}
}

const goodDocument = `{"client_id":"ID","client_name":"An app","redirect_uris":["https://app.test/cb"]}`

func TestDocument(t *testing.T) {
	s := newDocumentServer(t, serving("application/json; charset=utf-8", goodDocument))
	for range 2 {
		c, err := s.documents.client(t.Context(), s.id)
		if err != nil {
			t.Fatal(err)
		}
		if c.id != s.id || c.name != "An app" || !c.mayRedirect("https://app.test/cb") || c.mayRedirect("https://app.test/") {
			t.Errorf("client %+v", c)
		}
	}
	if n := s.visits.Load(); n != 1 {
		t.Errorf("fetched %d times, want once", n)
	}
}

func TestFaultyDocuments(t *testing.T) {
	for name, handler := range map[string]func(string) http.HandlerFunc{
		"of another client": serving("application/json", strings.Replace(goodDocument, "ID", "https://other.test/app.json", 1)),
		"no name":           serving("application/json", `{"client_id":"ID","client_name":" ","redirect_uris":["https://app.test/cb"]}`),
		"no redirects":      serving("application/json", `{"client_id":"ID","client_name":"a","redirect_uris":[]}`),
		"many redirects":    serving("application/json", `{"client_id":"ID","client_name":"a","redirect_uris":[`+strings.Repeat(`"x",`, maxRedirects)+`"x"]}`),
		"with a secret":     serving("application/json", `{"client_id":"ID","client_name":"a","redirect_uris":["https://app.test/cb"],"token_endpoint_auth_method":"client_secret_basic"}`),
		"other grants":      serving("application/json", `{"client_id":"ID","client_name":"a","redirect_uris":["https://app.test/cb"],"grant_types":["implicit"]}`),
		"a page":            serving("text/html", goodDocument),
		"no JSON":           serving("application/json", "<html>"),
		"too long":          serving("application/json", goodDocument+strings.Repeat(" ", maxDocument)),
		"not found":         func(string) http.HandlerFunc { return http.NotFound },
		"redirected": func(id string) http.HandlerFunc {
			return func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/app.json" {
					http.Redirect(w, r, "/other.json", http.StatusFound)
					return
				}
				serving("application/json", goodDocument)(id)(w, r)
			}
		},
	} {
		s := newDocumentServer(t, handler)
		if c, err := s.documents.client(t.Context(), s.id); err == nil {
			t.Errorf("%s: accepted %+v", name, c)
		}
		if n := s.visits.Load(); n != 1 {
			t.Errorf("%s: %d visits, want one", name, n)
		}
		if len(s.documents.kept) != 0 {
			t.Errorf("%s: a failure was kept", name)
		}
	}
}

// A document whose server never ends its answer holds nobody.
func TestSlowDocument(t *testing.T) {
	stop := make(chan struct{})
	s := newDocumentServer(t, func(string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = http.NewResponseController(w).Flush()
			<-stop
		}
	})
	defer close(stop)
	if s.documents.http.Timeout != documentTimeout {
		t.Fatalf("timeout %s", s.documents.http.Timeout)
	}
	s.documents.http.Timeout = 50 * time.Millisecond
	if _, err := s.documents.client(t.Context(), s.id); err == nil {
		t.Error("accepted")
	}
}

// What this machine can reach and a caller cannot stays out of reach: whatever
// a name resolves to, and when one of several addresses is not public.
func TestForbiddenAddresses(t *testing.T) {
	for _, addrs := range [][]string{
		{"127.0.0.1"},
		{"127.1.2.3"},
		{"0.0.0.0"},
		{"10.0.0.1"},
		{"172.16.0.1"},
		{"192.168.1.1"},
		{"169.254.169.254"},
		{"100.64.0.1"},
		{"224.0.0.1"},
		{"255.255.255.255"},
		{"192.0.2.1"},
		{"198.18.0.1"},
		{"::1"},
		{"::"},
		{"fe80::1"},
		{"fc00::1"},
		{"fd00:ec2::254"},
		{"ff02::1"},
		{"::ffff:127.0.0.1"},
		{"::ffff:10.0.0.1"},
		{"::127.0.0.1"},
		{"64:ff9b::7f00:1"},
		{"2002:7f00:1::"},
		{"fec0::1"},
		{"2001::1"},
		{"93.184.216.34", "127.0.0.1"},
		{},
	} {
		s := newDocumentServer(t, serving("application/json", goodDocument))
		s.documents.public = isPublic
		s.documents.resolve = resolvesTo(addrs...)
		_, err := s.documents.client(t.Context(), s.id)
		if err == nil || s.visits.Load() != 0 {
			t.Errorf("%v: %v, %d visits", addrs, err, s.visits.Load())
		}
		for _, a := range addrs {
			if err != nil && strings.Contains(err.Error(), a) {
				t.Errorf("the error %q shows the address", err)
			}
		}
		if len(addrs) == 1 && isPublic(netip.MustParseAddr(addrs[0])) {
			t.Errorf("%s is public", addrs[0])
		}
	}
	for _, a := range []string{"93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "::ffff:8.8.8.8"} {
		if !isPublic(netip.MustParseAddr(a)) {
			t.Errorf("%s is not public", a)
		}
	}
}

// Addresses written into the id are looked at like those of names, and the
// address that was looked at is the one that is dialled: the name is resolved
// once.
func TestResolvedOnce(t *testing.T) {
	s := newDocumentServer(t, serving("application/json", goodDocument))
	var lookups int
	s.documents.resolve = func(context.Context, string) ([]netip.Addr, error) {
		lookups++
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
	}
	if _, err := s.documents.client(t.Context(), s.id); err != nil || lookups != 1 {
		t.Errorf("%v after %d lookups", err, lookups)
	}
	for _, host := range []string{"127.0.0.1", "[::1]", "2130706433", "0x7f.1", "localhost"} {
		d := newDocuments()
		if _, err := d.client(t.Context(), "https://"+host+":1/app.json"); err == nil {
			t.Errorf("%s: accepted", host)
		}
	}
}

func TestDocumentsBounded(t *testing.T) {
	d := newDocuments()
	for i := range maxDocuments + 20 {
		d.keep(fmt.Sprint("https://client.test/", i), keptClient{&client{}, time.Now().Add(time.Hour)})
	}
	if len(d.kept) != maxDocuments {
		t.Errorf("%d documents are kept", len(d.kept))
	}
	for range maxFetches {
		d.slots <- struct{}{}
	}
	if _, err := d.client(t.Context(), "https://client.test/new"); !errors.Is(err, errBusy) {
		t.Errorf("%v, want %v", err, errBusy)
	}
}

func TestCacheAge(t *testing.T) {
	for control, want := range map[string]time.Duration{
		"": documentAge, "no-store": 0, "private, NO-CACHE": 0, "max-age=60": time.Minute, "max-age=0": 0,
		"public, max-age=999999999": maxDocumentAge, "max-age=-1": documentAge, "max-age=x": documentAge,
	} {
		if got := cacheAge(control); got != want {
			t.Errorf("%q: %s, want %s", control, got, want)
		}
	}
}

func TestReadable(t *testing.T) {
	for text, want := range map[string]string{
		"\tAn\napp\t":            "An app",
		"safe\u202egpj.exe":      "safe gpj.exe",
		"\x00\x1b[31m":           "[31m",
		strings.Repeat("é", 200): strings.Repeat("é", maxClientName) + "…",
	} {
		if got := readable(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
