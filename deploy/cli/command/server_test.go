package command

import (
	"strings"
	"testing"
)

func TestParseURL(t *testing.T) {
	if got, err := ParseURL("--base-url", "https://marketlog.example.com/"); err != nil || got != "https://marketlog.example.com" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, wrong := range []string{"", "marketlog.example.com", "ftp://marketlog.example.com", "http://", "::"} {
		if _, err := ParseURL("--base-url", wrong); err == nil || !strings.Contains(err.Error(), "--base-url") {
			t.Errorf("%q: got %v, want an error that names the flag", wrong, err)
		}
	}
	if _, err := ParseURL("MARKETLOG_URL", "https://me:secret@marketlog.example.com"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v, want an error without the password", err)
	}
}

func TestReachable(t *testing.T) {
	for listen, want := range map[string]string{
		"0.0.0.0:8080": "127.0.0.1:8080", "[::]:8080": "127.0.0.1:8080", ":8080": "127.0.0.1:8080", "192.0.2.1:80": "192.0.2.1:80", "127.0.0.1:1": "127.0.0.1:1",
	} {
		if got := reachable(listen); got != want {
			t.Errorf("%s: got %s, want %s", listen, got, want)
		}
	}
}
