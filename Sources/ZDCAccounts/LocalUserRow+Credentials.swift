package import ZDCClientAPI
package import ZDCClientStore

extension LocalUserRow {
  package var credentials: SessionCredentials {
    SessionCredentials(
      userID: userID, accessKey: secrets.accessKey, deviceID: secrets.deviceID, deviceKey: secrets.deviceKey)
  }
}
