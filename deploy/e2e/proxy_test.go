package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/deploytest"
)

// The example is run as it is, but for addresses and paths: what it passes on is what docs/proxy.md promises.
func TestProxyExampleOfNginx(t *testing.T) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		t.Skip("not applicable: no nginx on PATH, so the example of docs/proxy.md is not run here")
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s %q %q %q", r.Proto, r.Host, r.Header.Get("X-Forwarded-For"), r.Header.Get("Upgrade"), r.Header.Get("Connection"), r.Header.Get("Authorization"))
	}))
	defer upstream.Close()
	folder := t.TempDir()
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	certFile, keyFile := deploytest.SelfSigned(t, folder, 1)
	content, err := os.ReadFile("../../docs/examples/nginx.conf")
	if err != nil {
		t.Fatal(err)
	}
	addr := deploytest.FreeAddr(t)
	config := string(content)
	for old, fresh := range map[string]string{
		"pid /run/nginx.pid;":                            "pid " + folder + "/pid;",
		"server 127.0.0.1:8080;":                         "server " + upstream.Listener.Addr().String() + ";",
		"listen 443 ssl;":                                "listen " + addr + " ssl;",
		"ssl_certificate /etc/ssl/marketlog/cert.pem":    "ssl_certificate " + certFile,
		"ssl_certificate_key /etc/ssl/marketlog/key.pem": "ssl_certificate_key " + keyFile,
		// Where the distribution's nginx keeps what it buffers, another user may not write.
		"access_log off;": fmt.Sprintf("access_log off; client_body_temp_path %[1]s/b; proxy_temp_path %[1]s/p; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;", folder),
	} {
		if strings.Count(config, old) != 1 {
			t.Fatalf("the example has %d times %q, want once", strings.Count(config, old), old)
		}
		config = strings.Replace(config, old, fresh, 1)
	}
	path := filepath.Join(folder, "nginx.conf")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	nginx := exec.Command(program, "-p", folder, "-c", path, "-e", "stderr", "-g", "daemon off;")
	nginx.Stdout, nginx.Stderr = log, log
	if err := nginx.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nginx.Process.Signal(os.Interrupt); _ = nginx.Wait() })

	pem, err := os.ReadFile(certFile)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	ask := func(header map[string]string) (string, error) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+"/api/v1/prices/BTC", nil)
		if err != nil {
			return "", err
		}
		request.Host = "marketlog.example.com"
		for name, value := range header {
			request.Header.Set(name, value)
		}
		answer, err := client.Do(request)
		if err != nil {
			return "", err
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		return string(body), err
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
			break
		}
		if time.Now().After(deadline) {
			logged, _ := os.ReadFile(log.Name()) // only for the message
			t.Fatalf("nginx does not listen: %v\n%s", err, logged)
		}
	}
	for _, test := range []struct {
		header map[string]string
		want   string
	}{
		{map[string]string{"Authorization": "Bearer x", "X-Forwarded-For": "192.0.2.1"}, `HTTP/1.1 marketlog.example.com 127.0.0.1 "" "" "Bearer x"`},
		{map[string]string{"Upgrade": "websocket", "Connection": "Upgrade"}, `HTTP/1.1 marketlog.example.com 127.0.0.1 "websocket" "upgrade" ""`},
	} {
		if got, err := ask(test.header); err != nil || got != test.want {
			t.Errorf("with %v: what arrives is %s, %v, want %s", test.header, got, err, test.want)
		}
	}
}
