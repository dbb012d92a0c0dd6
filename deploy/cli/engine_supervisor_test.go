package cli

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/admin"
	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// engineFiles builds the program into a new folder, and gives a password file and the place of a data directory there.
func engineFiles(t *testing.T) (folder, binary, password, dir string) {
	t.Helper()
	if _, err := engine.Find(""); err != nil {
		streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
	}
	folder, err := os.MkdirTemp("", "engine") // t.TempDir may be longer than a socket's name can be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	binary, password, dir = filepath.Join(folder, "marketlog"), filepath.Join(folder, "password"), filepath.Join(folder, "data")
	if err := deploytest.BuildBinary(binary); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(password, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	return folder, binary, password, dir
}

// The library ends the process that loads it when it crashes: the role answers again, and its log says how it died.
func TestEngineThatDiesIsStartedAgain(t *testing.T) {
	folder, binary, password, dir := engineFiles(t)
	sql := deploytest.FreeAddr(t)
	log, err := os.Create(filepath.Join(folder, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	output := func() string {
		content, _ := os.ReadFile(log.Name()) // only for messages
		return string(content)
	}
	supervisor := exec.Command(binary, "engine", "--data-dir", dir, "--sql-listen", sql, "--clickhouse-listen", deploytest.FreeAddr(t), "--metrics-listen", deploytest.FreeAddr(t))
	supervisor.Env = append(os.Environ(), "MARKETLOG_CLICKHOUSE_PASSWORD_FILE="+password)
	supervisor.Stdout, supervisor.Stderr = log, log
	if err := supervisor.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- supervisor.Wait() }()
	t.Cleanup(func() { _ = supervisor.Process.Kill() })

	await := func(what string, holds func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("within a minute: no %s; the log says\n%s", what, output())
			}
		}
	}
	serving := 0 // the process that does
	answersOf := func(before int) func() bool {
		return func() bool {
			info, ok, err := admin.RunningInstance(dir)
			if err != nil || !ok || info.PID == before {
				return false
			}
			serving = info.PID
			answer, err := http.Get("http://" + sql + "/?query=SELECT+42")
			if err != nil {
				return false
			}
			defer answer.Body.Close()
			body, _ := io.ReadAll(answer.Body)
			return strings.TrimSpace(string(body)) == "42"
		}
	}
	await("answer", answersOf(0))
	if serving == supervisor.Process.Pid {
		t.Fatal("the process that was started serves itself")
	}
	for _, signal := range []syscall.Signal{syscall.SIGSEGV, syscall.SIGKILL} {
		died := serving
		if err := syscall.Kill(died, signal); err != nil {
			t.Fatal(err)
		}
		await("answer after "+signal.String(), answersOf(died))
	}
	for _, want := range []string{"engine process died", "signal: killed", "exit status 2", "SIGSEGV: segmentation violation", "stderr", "retry_in"} {
		if !strings.Contains(output(), want) {
			t.Errorf("its log lacks %q:\n%s", want, output())
		}
	}

	if err := supervisor.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, output())
	}
	if _, err := os.Stat(filepath.Join(dir, admin.RunFile)); err == nil {
		t.Error("the engine did not end in order")
	}

	supervisor = exec.Command(supervisor.Path, supervisor.Args[1:]...)
	supervisor.Env = append(os.Environ(), "MARKETLOG_CLICKHOUSE_PASSWORD_FILE="+password)
	if err := supervisor.Start(); err != nil {
		t.Fatal(err)
	}
	await("answer of a second life", answersOf(0))
	if err := supervisor.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = supervisor.Wait() // says that it was killed
	await("end of the engine with its supervisor", func() bool {
		dir, err := admin.HoldDataDir(dir)
		if err != nil {
			return false
		}
		return dir.Release() == nil
	})
}

// superviseByHand starts an engine whose supervisor is the test, and waits until it serves; leash is the pipe that holds both together, with
// its reading end.
func superviseByHand(t *testing.T) (child *exec.Cmd, leash, reading *os.File, output *bytes.Buffer) {
	t.Helper()
	_, binary, password, dir := engineFiles(t)
	output = &bytes.Buffer{}
	child = exec.Command(binary, "engine", "--"+supervisedFlag, "--data-dir", dir, "--sql-listen", "", "--clickhouse-listen", deploytest.FreeAddr(t), "--metrics-listen", deploytest.FreeAddr(t))
	child.Env = append(os.Environ(), "MARKETLOG_CLICKHOUSE_PASSWORD_FILE="+password)
	child.Stdout, child.Stderr = output, output
	reading, leash, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = reading.Close(), leash.Close() })
	child.Stdin = reading
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = child.Process.Kill() })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if info, ok, err := admin.RunningInstance(dir); err == nil && ok && info.Engine != "" {
			return child, leash, reading, output
		}
		if time.Now().After(deadline) {
			t.Fatalf("within a minute: no engine\n%s", output.String())
		}
	}
}

// A supervisor that is killed while its child stops must not turn an orderly end into a kill.
func TestEngineThatWasAskedToStopEndsInOrder(t *testing.T) {
	child, leash, _, output := superviseByHand(t)
	if _, err := io.WriteString(leash, "stop\n"); err != nil {
		t.Fatal(err)
	}
	if err := leash.Close(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Errorf("after it was asked to stop: %v\n%s", err, output.String())
	}
}

// A process that is stopped and goes on, as with a laptop's lid, has not lost its supervisor, also where its end of the pipe does not wait.
func TestEngineThatWasStoppedGoesOn(t *testing.T) {
	child, leash, reading, output := superviseByHand(t)
	// Both processes have the same open file.
	if err := syscall.SetNonblock(int(reading.Fd()), true); err != nil {
		t.Fatal(err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		if err := child.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
	}
	if _, err := io.WriteString(leash, "stop\n"); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Errorf("after it was stopped, went on and was asked to end: %v\n%s", err, output.String())
	}
}

// The library takes what is in standard input at an INSERT for rows.
func TestEngineLeavesStandardInputAlone(t *testing.T) {
	folder, binary, _, dir := engineFiles(t)
	path := filepath.Join(folder, "input")
	if err := os.WriteFile(path, []byte("1\n2\n3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	input, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer input.Close()
	var output bytes.Buffer
	command := exec.Command(binary, "run", "--feeds", "none", "--data-dir", dir, "--listen", deploytest.FreeAddr(t), "--sql-listen", deploytest.FreeAddr(t), "--kafka-listen", deploytest.FreeAddr(t), "--metrics-listen", "")
	command.Stdin, command.Stdout, command.Stderr = input, &output, &output
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() })
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if info, ok, err := admin.RunningInstance(dir); err == nil && ok && info.SQLListen != "" {
			break // its tables are made, and their versions inserted
		}
		if time.Now().After(deadline) {
			t.Fatalf("within a minute: no instance\n%s", output.String())
		}
	}
	// Both processes have the same open file.
	if at, err := input.Seek(0, io.SeekCurrent); err != nil || at != 0 {
		t.Errorf("%d bytes of standard input were read, %v", at, err)
	}
	if err := command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("stopping: %v\n%s", err, output.String())
	}
}
