package pages

import (
	"embed"
	"encoding/json"
	"fmt"
	"mime"
	"path"
	"sync"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"
)

// dist is built from web by `make web`, and committed: who builds the program needs no npm.
//
//go:embed dist
var dist embed.FS

// bundle is what a page loads, as the build says.
type bundle struct {
	// Script is the page's module, Imports what it loads at once, Style its style sheet; names of files of dist.
	Script  string   `json:"script"`
	Imports []string `json:"imports"`
	Style   string   `json:"style"`
}

// manifest is dist/manifest.json.
type manifest struct {
	Pages map[string]bundle `json:"pages"`
	Icon  string            `json:"icon"`
}

// asset is a file of dist. Its name has the hash of its content, so browsers keep it for good.
type asset struct {
	content     []byte
	contentType string
	gzipped     func() []byte
}

var contentTypes = map[string]string{
	".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

// readAssets reads what is embedded.
func readAssets() (map[string]*asset, manifest, error) {
	files, m := map[string]*asset{}, manifest{}
	entries, err := dist.ReadDir("dist")
	if err != nil {
		return nil, m, fmt.Errorf("reading the pages' files: %w", err)
	}
	for _, entry := range entries {
		content, err := dist.ReadFile("dist/" + entry.Name())
		if err != nil {
			return nil, m, fmt.Errorf("reading the pages' files: %w", err)
		}
		if entry.Name() == "manifest.json" {
			if err := json.Unmarshal(content, &m); err != nil {
				return nil, m, fmt.Errorf("reading the manifest of the pages: %w", err)
			}
			continue
		}
		kind := contentTypes[path.Ext(entry.Name())]
		if kind == "" {
			kind = mime.TypeByExtension(path.Ext(entry.Name()))
		}
		files[entry.Name()] = &asset{content: content, contentType: kind, gzipped: sync.OnceValue(func() []byte {
			return fasthttp.AppendGzipBytesLevel(nil, content, fasthttp.CompressBestCompression)
		})}
	}
	return files, m, nil
}

// sendAsset answers /assets/NAME.
func (u *Unit) sendAsset(c *fiber.Ctx) error {
	file := u.assets[c.Params("name")]
	if file == nil {
		return fiber.ErrNotFound
	}
	u.sendFile(c.Context(), file)
	c.Context().Response.Header.Set(fiber.HeaderCacheControl, "public, max-age=31536000, immutable")
	return nil
}

func (u *Unit) sendFile(ctx *fasthttp.RequestCtx, file *asset) {
	u.secure(ctx)
	h := &ctx.Response.Header
	h.SetContentType(file.contentType)
	h.Set(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	if ctx.Request.Header.HasAcceptEncoding("gzip") {
		h.Set(fiber.HeaderContentEncoding, "gzip")
		ctx.Response.SetBodyRaw(file.gzipped())
		return
	}
	ctx.Response.SetBodyRaw(file.content)
}

// sendIcon answers /favicon.ico, which browsers ask for by themselves.
func (u *Unit) sendIcon(c *fiber.Ctx) error {
	u.sendFile(c.Context(), u.assets[u.manifest.Icon])
	c.Context().Response.Header.Set(fiber.HeaderCacheControl, "public, max-age=86400")
	return nil
}

// sendLicences answers /licences.txt: what others wrote of the scripts.
func (u *Unit) sendLicences(c *fiber.Ctx) error {
	u.sendFile(c.Context(), u.assets["licences.txt"])
	return nil
}
