/** What Prometheus has scraped, and whether an alert follows from it. */
export interface AlertCase {
  alert: string;
  when: string;
  /** Samples from 0 s on, one each 30 s, as promtool writes them; all of the release's namespace. */
  series: Record<`${string}{${string}}`, string>;
  at: string;
  /** Empty: it is silent. `labels` come on top of those of the rule; `says`: the results of its templates, one after the other. */
  fires: readonly { labels?: Record<string, string>; says: readonly string[] }[];
}
