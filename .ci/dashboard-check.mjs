// SPDX-License-Identifier: MIT OR Apache-2.0
// The dashboard on standard input as a TypeScript module that only compiles if Grafana's own types (@grafana/schema) know
// each of its keys and values.
import { readFileSync } from "node:fs";
const board = JSON.parse(readFileSync(0, "utf8"));
const { panels, ...rest } = board;
const of = (name, type, value) => `export const ${name}: Json<${type}> = ${JSON.stringify(value, null, 1)};`;
const lines = [
  'import type { Dashboard, Panel } from "@grafana/schema/dist/esm/raw/dashboard/x/Dashboard_types.gen";',
  'import type { FieldConfig, Options } from "@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen";',
  // An enum is written as one of its values.
  "type Json<T> = T extends string ? `${T}` : T extends number | boolean | null | undefined ? T : T extends (infer E)[] ? Json<E>[] : T extends object ? { [K in keyof T]: Json<T[K]> } : T;",
  of("dashboard", "Dashboard", rest),
];
const kinds = ["timeseries"];
panels.forEach((panel, index) => {
  if (!kinds.includes(panel.type)) throw new Error(`panel ${index}: no types for ${panel.type}`);
  const { options, fieldConfig, targets, ...common } = panel;
  const { custom, ...defaults } = fieldConfig.defaults;
  lines.push(of(`panel${index}`, "Panel", { ...common, fieldConfig: { ...fieldConfig, defaults } }));
  lines.push(of(`options${index}`, "Options", options));
  lines.push(of(`custom${index}`, "FieldConfig", custom ?? {}));
});
console.log(lines.join("\n"));
