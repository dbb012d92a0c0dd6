package fetch

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/marketlog/marketlog/stream/retry"
)

// How long is waited before a download goes on after it broke off, how often in a row without a byte more, and how long for the
// next bytes.
const (
	firstPause   = 500 * time.Millisecond
	longestPause = 10 * time.Second
	mostFailures = 6
	longestStall = time.Minute
)

// download is one file of one address. It is used by one goroutine.
type download struct {
	client       *http.Client
	address      string
	to           *os.File
	report       func(Progress)
	pause, stall time.Duration
	// pieced is whether to holds bytes of more than one answer.
	pieced bool
}

// refusal is an answer that another try would get again.
type refusal struct{ error }

// run appends to the file what is missing of it, in as many tries as it takes while each brings it further.
func (d *download) run(ctx context.Context) error {
	pauses := retry.New(cmp.Or(d.pause, firstPause), longestPause)
	furthest, failures := int64(-1), 0
	for {
		err := d.try(ctx)
		var refused refusal
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("downloading %s: %w", d.address, context.Cause(ctx))
		case errors.As(err, &refused):
			return fmt.Errorf("downloading %s: %w", d.address, err)
		}
		size, statErr := d.size()
		if statErr != nil {
			return statErr
		}
		if failures++; size > furthest {
			furthest, failures = size, 0
			pauses.Reset()
		}
		if failures == mostFailures {
			return fmt.Errorf("downloading %s: %w; the same command resumes it", d.address, err)
		}
		if err := retry.Wait(ctx, pauses.Next()); err != nil {
			return fmt.Errorf("downloading %s: %w", d.address, err)
		}
	}
}

func (d *download) size() (int64, error) {
	stat, err := d.to.Stat()
	if err != nil {
		return 0, fmt.Errorf("looking how much was downloaded: %w", err)
	}
	return stat.Size(), nil
}

var errStalled = errors.New("nothing came any more")

// try makes one request and appends what it answers. An error that is not a refusal may be over at the next try.
func (d *download) try(ctx context.Context) error {
	offset, err := d.size()
	if err != nil {
		return refusal{err}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := cmp.Or(d.stall, longestStall)
	watchdog := time.AfterFunc(stall, func() { cancel(errStalled) })
	defer watchdog.Stop()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.address, nil)
	if err != nil {
		return refusal{err}
	}
	request.Header.Set("Accept-Encoding", "identity")
	if offset > 0 {
		request.Header.Set("Range", "bytes="+strconv.FormatInt(offset, 10)+"-")
	}
	answer, err := d.client.Do(request)
	if err != nil {
		if wrapped := new(url.Error); errors.As(err, &wrapped) { // it would repeat the address
			err = wrapped.Err
		}
		return stalled(ctx, err)
	}
	defer answer.Body.Close()
	from, total, err := d.placeOf(answer, offset)
	if d.pieced = from != 0; err != nil || from < 0 {
		return err
	}
	if err := d.to.Truncate(from); err != nil {
		return refusal{err}
	}
	if _, err := d.to.Seek(from, io.SeekStart); err != nil {
		return refusal{err}
	}
	body := &counted{ctx, answer.Body, Progress{StepDownload, from, max(total, 0)}, func(p Progress) {
		watchdog.Reset(stall)
		d.report(p)
	}}
	size, err := io.Copy(&writing{d.to}, io.LimitReader(body, maxArchive-from+1))
	switch size += from; {
	case err != nil:
		return stalled(ctx, err)
	case size > maxArchive:
		_ = d.to.Truncate(0) // the next call would begin with it
		return refusal{fmt.Errorf("it has more than %d bytes", maxArchive)}
	case total >= 0 && size != total:
		return fmt.Errorf("%d of %d bytes came", size, total)
	}
	return nil
}

// stalled reports that the watchdog ended a request, where the error says that it was ended.
func stalled(ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errStalled) {
		return errStalled
	}
	return err
}

// placeOf returns where in the file the answer to a request for the bytes from offset begins, and how long the file is, -1 if
// nobody knows. A place of -1 without an error means that nothing is missing.
func (d *download) placeOf(answer *http.Response, offset int64) (from, total int64, err error) {
	switch status := answer.StatusCode; {
	case status == http.StatusOK: // it knows no ranges, or was asked for none
		from, total = 0, answer.ContentLength
	case status == http.StatusPartialContent:
		if from, total, err = contentRange(answer.Header.Get("Content-Range")); err == nil && from != offset {
			err = fmt.Errorf("the range from %d was answered with %q", offset, answer.Header.Get("Content-Range"))
		}
	case status == http.StatusRequestedRangeNotSatisfiable:
		if _, total, err = contentRange(answer.Header.Get("Content-Range")); err == nil && total == offset {
			return -1, total, nil
		}
		err = errors.New("there are fewer bytes than were downloaded before")
	case status >= 500, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		return 0, 0, fmt.Errorf("the registry answered %s", answer.Status)
	default:
		return 0, 0, refusal{fmt.Errorf("the registry answered %s; name another with --registry or npm_config_registry", answer.Status)}
	}
	if err != nil { // what lies there does not fit what is served
		return 0, 0, errors.Join(err, d.to.Truncate(0))
	}
	if total > maxArchive {
		return 0, 0, refusal{fmt.Errorf("it has %d bytes, more than %d", total, maxArchive)}
	}
	return from, total, nil
}

// contentRange reads "bytes 5-9/10", "bytes 5-9/*" and "bytes */10".
func contentRange(text string) (from, total int64, err error) {
	total = -1
	span, ok := strings.CutPrefix(text, "bytes ")
	span, of, cut := strings.Cut(span, "/")
	if ok = ok && cut; ok && of != "*" {
		total, err = strconv.ParseInt(of, 10, 64)
	}
	if begin, _, dashed := strings.Cut(span, "-"); ok && err == nil && span != "*" {
		ok = dashed
		from, err = strconv.ParseInt(begin, 10, 64)
	}
	if !ok || err != nil || from < 0 {
		return 0, 0, fmt.Errorf("the range %q cannot be read", text)
	}
	return from, total, nil
}

// writing makes errors of the disk refusals: no other try would help.
type writing struct{ to io.Writer }

func (w *writing) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if err != nil {
		err = refusal{err}
	}
	return n, err
}
