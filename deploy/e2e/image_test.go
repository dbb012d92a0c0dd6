package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/marketlog/marketlog/deploy/deploytest"
	"github.com/marketlog/marketlog/deploy/embedded/engine"
	"github.com/marketlog/marketlog/stream/streamtest"
)

// No container engine runs where the gate does. These tests assemble an image's root file system by the instructions of
// the Dockerfile, on the files that the base image takes from Debian, and start it there as its user: in a mount
// namespace, read-only but for what the container may write, and without the machine's own files. Not shown are the
// base image itself, the stages that build, and the container's network.

// basePackages are the Debian packages in which each base image has the files that programs run with.
var basePackages = map[string][]string{
	"gcr.io/distroless/static-debian12":     {"ca-certificates", "tzdata"},
	"gcr.io/distroless/base-nossl-debian12": {"ca-certificates", "tzdata", "libc6"},
}

// image is an image as its Dockerfile describes it, assembled in a folder.
type image struct {
	root string
	// data is the folder behind the image's volume.
	data        string
	env         map[string]string
	entry, args []string
	user        string
}

// assemble builds the stage target of the Dockerfile, empty for the last, with the binary that was built for it.
func assemble(t *testing.T, target, binary string) *image {
	t.Helper()
	content, err := os.ReadFile("../Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	if target == "" {
		target = "the last stage"
	}
	stages, name := map[string]*image{}, ""
	for line := range strings.Lines(string(content)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if word == "FROM" {
			if stages[target] != nil {
				break
			}
			base, as, named := strings.Cut(rest, " AS ")
			if name = as; !named {
				name = "the last stage"
			}
			if stages[base] != nil { // stages that follow go on in its folder
				stages[name] = stages[base]
			} else if _, final := basePackages[strings.Split(base, ":")[0]]; final {
				stages[name] = &image{root: filepath.Join(t.TempDir(), "root"), data: t.TempDir(), env: map[string]string{
					"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
				}}
				stages[name].unpack(t, base)
			}
			continue
		}
		if img := stages[name]; img != nil {
			img.instruction(t, word, rest, binary)
		}
	}
	if stages[target] == nil {
		t.Fatalf("the Dockerfile has no stage %q on a base image that this test knows: %v", target, slices.Sorted(maps.Keys(basePackages)))
	}
	return stages[target]
}

// unpack lays out what the base image holds.
func (img *image) unpack(t *testing.T, base string) {
	t.Helper()
	for _, folder := range []string{"proc", "dev", "tmp", "etc", "home/nonroot", "usr/lib"} {
		if err := os.MkdirAll(filepath.Join(img.root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range []string{"lib", "lib64"} { // as Debian 12 has them since its merger of /lib into /usr
		target, err := os.Readlink("/" + link)
		if err != nil {
			t.Skip("not applicable: /" + link + " is no link, so this machine is laid out otherwise than the base image")
		}
		if err := errors.Join(os.MkdirAll(filepath.Join(img.root, target), 0o755), os.Symlink(target, filepath.Join(img.root, link))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(img.root, "etc/passwd"), []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, name := range basePackages[strings.Split(base, ":")[0]] {
		list, err := exec.Command("dpkg", "-L", name).Output()
		if err != nil {
			t.Skipf("not applicable: the base image is made of Debian packages, and dpkg knows no %s here: %v", name, err)
		}
		for path := range strings.FieldsSeq(string(list)) {
			stat, err := os.Lstat(path)
			if err != nil || !stat.Mode().IsRegular() && stat.Mode().Type() != fs.ModeSymlink || strings.HasPrefix(path, "/usr/share/doc") || strings.Contains(path, "/gconv/") {
				continue
			}
			if stat.Mode().IsRegular() {
				img.place(t, path, path, stat.Mode().Perm())
			} else if target, err := os.Readlink(path); err == nil {
				_ = os.MkdirAll(filepath.Dir(filepath.Join(img.root, path)), 0o755) // the link fails where this did
				if err := os.Symlink(target, filepath.Join(img.root, path)); err != nil && !errors.Is(err, fs.ErrExist) {
					t.Fatal(err)
				}
			}
		}
	}
}

// place puts a file of this machine into the image.
func (img *image) place(t *testing.T, from, to string, mode fs.FileMode) {
	t.Helper()
	path := filepath.Join(img.root, to)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Link(from, path) == nil { // the engine has half a gigabyte
		return
	}
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(path, content, mode)
	}
	if err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
}

// instruction carries one out, and fails on one that it does not know.
func (img *image) instruction(t *testing.T, word, rest, binary string) {
	t.Helper()
	list := func() (list []string) {
		if err := json.Unmarshal([]byte(rest), &list); err != nil {
			t.Fatalf("%s %s: write it as a list, the image has no shell: %v", word, rest, err)
		}
		return list
	}
	switch word {
	case "", "#", "EXPOSE":
	case "ENV":
		key, value, _ := strings.Cut(rest, "=")
		img.env[key] = value
	case "USER":
		img.user = rest
	case "ENTRYPOINT":
		img.entry = list()
	case "CMD":
		img.args = list()
	case "VOLUME":
		if rest != "/data" {
			t.Fatalf("VOLUME %s is not what this test mounts", rest)
		}
	case "COPY":
		fields := strings.Fields(rest)
		from, to := fields[len(fields)-2], fields[len(fields)-1]
		switch source := fields[0] + " " + from; source {
		case "--from=build /marketlog":
			img.place(t, binary, to, 0o755)
		case "--from=engine /libchdb.so":
			library, err := engine.Find("")
			if err != nil {
				streamtest.Missing(t, streamtest.TierEmbedded, "no ClickHouse engine; make engine fetches it")
			}
			img.place(t, library, to, 0o755)
		case "--from=build /data":
			if err := os.MkdirAll(filepath.Join(img.root, to), 0o755); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(rest, "--chown="+"65532:65532 ") {
				return
			}
			if err := os.Chown(img.data, 65532, 65532); err != nil {
				t.Fatal(err)
			}
		default:
			t.Fatalf("COPY %s: this test does not know what that is", rest)
		}
	default:
		t.Fatalf("%s %s: this test does not know the instruction", word, rest)
	}
}

// enter mounts what a container engine does and becomes the image's user, so that the process it was started as is the
// image's command.
const enter = `set -e
root=$1 data=$2 user=$3; shift 3
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/tmp"
mount --bind "$data" "$root/data"
mount -o remount,ro,bind "$root"
exec chroot --userspec="$user" "$root" "$@"`

// command is the image's entry point with its own arguments, or with others; env is laid over the image's environment.
func (img *image) command(env map[string]string, args ...string) *exec.Cmd {
	if len(args) == 0 {
		args = img.args
	}
	command := exec.Command("unshare", append([]string{"--mount", "--propagation", "private", "sh", "-c", enter, "sh",
		img.root, img.data, img.user}, append(slices.Clone(img.entry), args...)...)...)
	all := maps.Clone(img.env)
	maps.Copy(all, env)
	for key, value := range all {
		command.Env = append(command.Env, key+"="+value)
	}
	return command
}

// needNamespaces leaves the test out where the machine forbids what it needs.
func needNamespaces(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("not applicable: images are of Linux")
	}
	if os.Getuid() != 0 {
		streamtest.Missing(t, streamtest.TierEmbedded, "only root may assemble and enter an image")
	}
	if out, err := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", "mount -t proc proc /proc").CombinedOutput(); err != nil {
		t.Skipf("not applicable: this machine forbids to mount in a namespace of one's own: %v %s", err, out)
	}
}

// runningImage is a command of an image that was started.
type runningImage struct {
	*exec.Cmd
	log   *os.File
	ended chan error
}

func (img *image) start(t *testing.T, env map[string]string, args ...string) *runningImage {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	r := &runningImage{Cmd: img.command(env, args...), log: log, ended: make(chan error, 1)}
	r.Stdout, r.Stderr = log, log
	if err := r.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { r.ended <- r.Wait() }()
	t.Cleanup(func() { _ = r.Process.Kill(); _ = log.Close() })
	return r
}

func (r *runningImage) output() string {
	content, _ := os.ReadFile(r.log.Name()) // only for messages
	return string(content)
}

// answers waits until url answers with the status, and returns the body.
func (r *runningImage) answers(t *testing.T, url string, status int) string {
	t.Helper()
	last := ""
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		answer, err := http.Get(url)
		if err == nil {
			body, _ := io.ReadAll(answer.Body)
			answer.Body.Close()
			last = answer.Status + " " + string(body)
			if answer.StatusCode == status {
				return string(body)
			}
		} else {
			last = err.Error()
		}
		select {
		case err := <-r.ended:
			t.Fatalf("it ended with %v:\n%s", err, r.output())
		default:
		}
	}
	t.Fatalf("%s: %s, want status %d; it says\n%s", url, last, status, r.output())
	return ""
}

// stop asks it to end, which must be clean.
func (r *runningImage) stop(t *testing.T) {
	t.Helper()
	if err := r.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-r.ended:
		if err != nil {
			t.Errorf("after SIGTERM: %v\n%s", err, r.output())
		}
	case <-time.After(time.Minute):
		t.Errorf("it does not end within a minute of SIGTERM:\n%s", r.output())
	}
}

func TestImages(t *testing.T) {
	alone(t)
	needNamespaces(t)
	binary := filepath.Join(t.TempDir(), "marketlog")
	if err := deploytest.BuildBinary(binary); err != nil {
		t.Fatal(err)
	}
	t.Run("everything", func(t *testing.T) { imageStartsAnswersAndEnds(t, binary) })
	t.Run("roles", func(t *testing.T) { rolesStartAndWait(t, binary) })
}

func imageStartsAnswersAndEnds(t *testing.T, binary string) {
	img := assemble(t, "", binary)
	if host, _, _ := strings.Cut(img.env["MARKETLOG_LISTEN"], ":"); host != "0.0.0.0" {
		t.Errorf("the image listens on %q, which nobody outside of the container reaches", img.env["MARKETLOG_LISTEN"])
	}
	listen, sql := deploytest.FreeAddr(t), deploytest.FreeAddr(t)
	env := map[string]string{
		"MARKETLOG_LISTEN": listen, "MARKETLOG_SQL_LISTEN": sql, "MARKETLOG_KAFKA_LISTEN": deploytest.FreeAddr(t), "MARKETLOG_METRICS_LISTEN": "127.0.0.1:0",
		"MARKETLOG_FEEDS": "none", // whether the simulator runs does not depend on the image, and it takes a core
	}
	r := img.start(t, env)
	r.answers(t, "http://"+listen+"/readyz", http.StatusOK)
	r.answers(t, "http://"+listen+"/api/v1/prices/BTC", http.StatusUnauthorized)
	r.answers(t, "http://"+sql+"/?query=SELECT+count()+FROM+v_prices", http.StatusOK)
	for _, args := range [][]string{{"doctor"}, {"keys", "create", "--plan", "pro"}, {"keys", "list"}} {
		if out, err := img.command(env, args...).CombinedOutput(); err != nil {
			t.Errorf("marketlog %s in the running image: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	r.stop(t)
}

// Each role of the compose file, without its servers, starts, says what it waits for, and ends when asked to.
func rolesStartAndWait(t *testing.T, binary string) {
	project := composeProject(t)
	build := project.Services["query"].Build
	if filepath.Base(build.Dockerfile) != "Dockerfile" {
		t.Fatalf("the roles are built by %s, which this test does not read", build.Dockerfile)
	}
	img := assemble(t, build.Target, binary)
	volume, secrets := img.data, filepath.Join(img.data, "secrets")
	if err := os.Mkdir(secrets, 0o755); err != nil {
		t.Fatal(err)
	}
	for name := range project.Secrets {
		if err := os.WriteFile(filepath.Join(secrets, name), []byte("secret"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, role := range []string{"produce", "process", "query"} {
		t.Run(role, func(t *testing.T) {
			env := map[string]string{}
			for name, value := range project.Services[role].Environment {
				// A container's names, which nobody knows here, are those of servers that are away.
				env[name] = strings.NewReplacer("/run/secrets", "/data/secrets", "kafka:", "kafka.invalid:", "clickhouse:", "clickhouse.invalid:", "redis:", "redis.invalid:").Replace(*value)
			}
			metrics := deploytest.FreeAddr(t)
			env["MARKETLOG_METRICS_LISTEN"] = metrics
			if env["MARKETLOG_LISTEN"] != "" {
				env["MARKETLOG_LISTEN"] = deploytest.FreeAddr(t)
			}
			env["MARKETLOG_DATA_DIR"] = "/data/" + role
			if err := os.Mkdir(filepath.Join(volume, role), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chown(filepath.Join(volume, role), 65532, 65532); err != nil {
				t.Fatal(err)
			}
			r := img.start(t, env, project.Services[role].Command...)
			r.answers(t, fmt.Sprintf("http://%s/healthz", metrics), http.StatusOK)
			if body := r.answers(t, fmt.Sprintf("http://%s/readyz", metrics), http.StatusServiceUnavailable); !strings.Contains(body, "opening the log") {
				t.Errorf("it does not say that it waits for the log: %s", body)
			}
			r.stop(t)
		})
	}
}
