package sql

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ServerConfig names a ClickHouse server, and a user of it that may only read.
type ServerConfig struct {
	// Addr is HOST:PORT of its HTTP interface.
	Addr           string
	User, Password string
	// TLS encrypts the connection; nil: it is in the clear.
	TLS *tls.Config
	// Statements run at once, 1 or more; others wait for up to 10 s.
	Statements int
	// Log receives why the server could not be asked, which callers are not shown.
	Log *slog.Logger
}

// views is the database that the views of analysts are in.
const views = "default"

const (
	// placeWait is how long a statement waits for others to end.
	placeWait = 10 * time.Second
	// dialWithin bounds a connection's making, answerWithin how much longer than its time a statement may take to begin its answer:
	// the server counts from when it has read it.
	dialWithin   = 5 * time.Second
	answerWithin = 5 * time.Second
)

// codeAuthentication is ClickHouse's code of a user that it does not know, or not by that password.
const codeAuthentication = "516"

// Server is an Engine: it runs statements on a ClickHouse server. Safe for concurrent use.
type Server struct {
	cfg    ServerConfig
	client *http.Client
	places chan struct{}
}

// NewServer makes it; nothing is connected before the first statement.
func NewServer(cfg ServerConfig) *Server {
	dialer := net.Dialer{Timeout: dialWithin}
	return &Server{cfg: cfg, places: make(chan struct{}, cfg.Statements), client: &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, TLSClientConfig: cfg.TLS, TLSHandshakeTimeout: dialWithin,
			ResponseHeaderTimeout: Time + answerWithin, MaxIdleConnsPerHost: cfg.Statements, IdleConnTimeout: time.Minute, DisableCompression: true},
		// What answers is no ClickHouse; the password is for nobody else.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// Ask runs a statement within Time, Memory and Rows: see Engine. Whom it is for is the key of the server's quotas (quota_key), where it
// has some KEYED BY client_key. The answer may take twice its time to be read; when the context ends or its body is closed, so does the
// statement.
func (s *Server) Ask(ctx context.Context, client string, parameters url.Values, statement string) (*http.Response, error) {
	wait := time.NewTimer(placeWait)
	defer wait.Stop()
	select {
	case s.places <- struct{}{}:
	case <-wait.C:
		return refused(http.StatusServiceUnavailable, codeTooManyQueries, "Too many simultaneous queries. Maximum: "+strconv.Itoa(s.cfg.Statements)), nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*Time+answerWithin)
	end := func() { cancel(); <-s.places }
	response, err := s.send(ctx, client, parameters, statement)
	if err == nil {
		err = fault(response)
	}
	if err != nil {
		if response != nil {
			_ = response.Body.Close()
		}
		end()
		s.cfg.Log.Warn("the ClickHouse server cannot be asked", "addr", s.cfg.Addr, "user", s.cfg.User, "error", err)
		return refused(http.StatusServiceUnavailable, codeAborted, "the ClickHouse server cannot be asked now"), nil
	}
	response.Body = &streamedBody{ReadCloser: response.Body, left: end}
	return response, nil
}

func (s *Server) send(ctx context.Context, client string, parameters url.Values, statement string) (*http.Response, error) {
	all := url.Values{
		"database": {views}, "quota_key": {client}, "cancel_http_readonly_queries_on_client_close": {"1"},
		// It reads only, whatever else its user may. Settings may still be given, unlike with 1.
		"readonly":           {"2"},
		"max_execution_time": {strconv.FormatFloat(Time.Seconds(), 'f', -1, 64)}, "max_memory_usage": {strconv.Itoa(Memory)},
		"max_result_rows": {strconv.Itoa(Rows)}, "result_overflow_mode": {"throw"}, "timeout_overflow_mode": {"throw"},
	}
	for name, values := range parameters {
		all[name] = values
	}
	scheme := "http"
	if s.cfg.TLS != nil {
		scheme = "https"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, scheme+"://"+s.cfg.Addr+"/?"+all.Encode(), strings.NewReader(statement))
	if err != nil {
		return nil, err
	}
	request.Header.Set("X-ClickHouse-User", s.cfg.User)
	request.Header.Set("X-ClickHouse-Key", s.cfg.Password)
	response, err := s.client.Do(request)
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err // without the address and all its settings
	}
	return response, err
}

// fault is why an answer is not one to a statement.
func fault(response *http.Response) error {
	switch code := response.Header.Get("X-ClickHouse-Exception-Code"); {
	case code == codeAuthentication:
		return errors.New("it does not know the user of sql.user by the password of sql.password_file")
	case code == "" && response.StatusCode != http.StatusOK:
		return fmt.Errorf("what answers with status %d is not a ClickHouse server", response.StatusCode)
	}
	return nil
}

// refused is an answer of this process's own, in the form of ClickHouse's.
func refused(status, code int, text string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{"X-Clickhouse-Exception-Code": {strconv.Itoa(code)}},
		Body: io.NopCloser(strings.NewReader(fmt.Sprintf("Code: %d. DB::Exception: %s", code, text)))}
}
