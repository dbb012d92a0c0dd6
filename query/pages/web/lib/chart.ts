// Candles with their volume.
import { CandlestickSeries, ColorType, createChart, CrosshairMode, HistogramSeries, type IChartApi, type IPriceLine, type ISeriesApi, type UTCTimestamp } from "lightweight-charts"
import type { Candle } from "./api"
import { price } from "./format"

function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim()
}

export class CandleChart {
  private readonly chart: IChartApi
  private readonly candles: ISeriesApi<"Candlestick">
  private readonly volume: ISeriesApi<"Histogram">
  private readonly now: IPriceLine
  private shown: Candle[] = []
  private readonly scheme = matchMedia("(prefers-color-scheme: dark)")
  private readonly repaint = () => this.paint()

  constructor(place: HTMLElement) {
    this.chart = createChart(place, {
      autoSize: true,
      layout: { attributionLogo: false, fontFamily: getComputedStyle(document.body).fontFamily, fontSize: 12 },
      crosshair: { mode: CrosshairMode.Magnet },
      timeScale: { timeVisible: true, secondsVisible: false },
      handleScroll: { vertTouchDrag: false },
      localization: { priceFormatter: (n: number) => price(n) },
    })
    this.candles = this.chart.addSeries(CandlestickSeries, { borderVisible: false, priceLineVisible: false, lastValueVisible: false })
    this.candles.priceScale().applyOptions({ scaleMargins: { top: 0.08, bottom: 0.26 } })
    this.volume = this.chart.addSeries(HistogramSeries, { priceScaleId: "volume", priceFormat: { type: "volume" }, priceLineVisible: false, lastValueVisible: false })
    this.volume.priceScale().applyOptions({ scaleMargins: { top: 0.82, bottom: 0 } })
    this.now = this.candles.createPriceLine({ price: 0, lineWidth: 1, lineStyle: 1, axisLabelVisible: true, lineVisible: true })
    this.paint()
    this.scheme.addEventListener("change", this.repaint)
  }

  // show replaces the candles; fit moves all of them into view.
  show(candles: Candle[], fit: boolean, days: boolean): void {
    this.shown = candles
    const most = Math.max(0, ...candles.map((c) => c.high))
    const digits = most >= 100 ? 2 : most >= 1 ? 4 : most > 0 ? Math.min(12, 3 - Math.floor(Math.log10(most))) : 2
    this.candles.applyOptions({ priceFormat: { type: "custom", formatter: price, minMove: 10 ** -digits } })
    this.chart.timeScale().applyOptions({ timeVisible: !days })
    this.draw()
    if (fit) this.chart.timeScale().fitContent()
  }

  // live marks the current price.
  live(at: number): void {
    this.now.applyOptions({ price: at })
  }

  remove(): void {
    this.scheme.removeEventListener("change", this.repaint)
    this.chart.remove()
  }

  private draw(): void {
    const time = (c: Candle) => (Date.parse(c.timestamp) / 1000) as UTCTimestamp
    this.candles.setData(this.shown.map((c) => ({ time: time(c), open: c.open, high: c.high, low: c.low, close: c.close })))
    this.volume.setData(this.shown.map((c) => ({ time: time(c), value: c.volumeUsd })))
  }

  private paint(): void {
    const up = colour("--chart-up"), down = colour("--chart-down"), line = colour("--line"), dim = colour("--dim")
    this.chart.applyOptions({
      layout: { background: { type: ColorType.Solid, color: colour("--paper") }, textColor: dim },
      grid: { vertLines: { visible: false }, horzLines: { color: line } },
      rightPriceScale: { borderColor: line },
      timeScale: { borderColor: line },
    })
    this.candles.applyOptions({ upColor: up, downColor: down, wickUpColor: up, wickDownColor: down })
    this.volume.applyOptions({ color: colour("--volume") })
    this.now.applyOptions({ color: colour("--accent"), axisLabelColor: colour("--accent"), axisLabelTextColor: colour("--paper") })
  }
}
