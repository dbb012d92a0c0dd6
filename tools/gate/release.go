package main

import (
	"fmt"
	"io"
)

// archive is the name of what the step of releases finds.
const archive = "archive of a release"

// release makes the archive of a release for this machine, by the tool that makes those of all platforms, and looks into it. A machine that does not
// reach the modules of that tool skips it and reports it.
func release(out io.Writer) []result {
	command := yielding("tools/goreleaser/snapshot.sh", "--here")
	command.Env = lavish(asShipped())
	said, err := command.CombinedOutput()
	fmt.Fprintf(out, "%s", said)
	return []result{judgeRelease(said, err)}
}

func judgeRelease(said []byte, err error) result {
	r := result{tier: "release", name: archive}
	switch text := string(said); {
	case err == nil:
	case unreachable(text):
		r.outcome, r.reason = skipped, "not applicable: the modules of goreleaser cannot be reached: "+lastLine(said)
	default:
		r.outcome, r.reason, r.output = failed, fmt.Sprintf("release: %v: %s", err, lastLine(said)), text
	}
	return r
}
