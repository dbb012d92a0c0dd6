package producers

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// ErrLedAway means that a server redirected a request away from its own host, or from https to http. It will do so again: such a
// request is not repeated.
var ErrLedAway = errors.New("redirected away from the provider's host")

// maxRedirects is what net/http follows by itself.
const maxRedirects = 10

// StayOnHost is the http.Client.CheckRedirect of whatever asks a provider. It follows a redirect within the host of the
// first request only: an answer of another host is not the provider's, and a private address is nobody's to name.
func StayOnHost(next *http.Request, before []*http.Request) error {
	if len(before) >= maxRedirects {
		return fmt.Errorf("%d redirects", len(before))
	}
	first := before[0].URL
	switch {
	case authority(first) != authority(next.URL):
		return fmt.Errorf("%w: %s leads to %s; configure the new address if the provider has moved", ErrLedAway, first.Host, next.URL.Host)
	case encrypted(first) && !encrypted(next.URL):
		return fmt.Errorf("%w: %s://%s leads to %s://%s, which is not encrypted", ErrLedAway, first.Scheme, first.Host, next.URL.Scheme, next.URL.Host)
	}
	return nil
}

// authority is the host in lower case, with its port unless that is the default of the scheme.
func authority(u *url.URL) string {
	host := strings.ToLower(u.Host)
	if encrypted(u) {
		return strings.TrimSuffix(host, ":443")
	}
	return strings.TrimSuffix(host, ":80")
}

func encrypted(u *url.URL) bool { return u.Scheme == "https" || u.Scheme == "wss" }
